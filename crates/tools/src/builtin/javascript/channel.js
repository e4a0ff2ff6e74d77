// The line protocol of both kernels: JSON after a mark, one message per line. Whatever else is written to standard
// output has no mark, and is taken for output of the script.
'use strict';
const fs = require('node:fs');
const [mark, least] = process.argv.slice(1);

function send(message) {
  const bytes = Buffer.from(`\n${mark}${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') process.exit(1);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

if (Number(process.versions.node.split('.')[0]) < Number(least)) {
  send({ kind: 'fatal', text: `Node ${least} or newer is needed; ${process.execPath} is ${process.versions.node}` });
  process.exit(0);
}

const waiting = new Map();
let calls = 0;

function call(name, args) {
  return new Promise((resolve, reject) => {
    const number = calls++;
    waiting.set(number, { resolve, reject });
    const text = typeof args === 'string' ? args : JSON.stringify(args === undefined ? {} : args);
    send({ kind: 'call', number, name: String(name), arguments: text, isText: typeof args === 'string' });
  });
}

function answered({ number, output, isError }) {
  const { resolve, reject } = waiting.get(number) ?? {};
  waiting.delete(number);
  if (isError) reject?.(new Error(output));
  else resolve?.(output);
}

function listen(on) {
  require('node:readline')
    .createInterface({ input: process.stdin, crlfDelay: Infinity })
    .on('line', (line) => {
      const message = JSON.parse(line);
      if (message.kind === 'answer') answered(message);
      else on(message);
    })
    .on('close', () => process.exit(0));
}
