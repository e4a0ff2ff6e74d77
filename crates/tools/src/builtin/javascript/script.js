// One script in a context of its own, which has only the helpers below.
const vm = require('node:vm');

let over = false;

function end(failed, text) {
  if (over) return;
  over = true;
  send({ kind: 'done', failed, text });
  process.exit(0);
}

const EXIT = Symbol('exit');

function shown(value) {
  if (typeof value === 'string') return value;
  const json = typeof value === 'object' && value !== null ? JSON.stringify(value) : undefined;
  return json ?? String(value);
}

function failure(error) {
  if (error === EXIT) return end(false, '');
  const stack = typeof error?.stack === 'string' ? error.stack : String(error?.message ?? error);
  end(true, stack.split('\n').filter((line) => !/\bnode:|\[eval\]/.test(line)).join('\n'));
}
process.on('uncaughtException', failure);
process.on('unhandledRejection', failure);

listen(({ code, tools, stored }) => {
  const values = new Map(Object.entries(stored));
  const methods = Object.fromEntries(tools.map(({ name, identifier }) => [identifier, (args) => call(name, args)]));
  const globals = {
    tools: Object.freeze(methods),
    ALL_TOOLS: tools.map(({ name, description }) => ({ name, description })),
    text: (value) => send({ kind: 'text', text: shown(value) }),
    image(like) {
      const { url, detail } = typeof like === 'string' ? { url: like } : { url: like?.image_url, detail: like?.detail };
      if (!/^(data:|https:)/.test(String(url))) throw new Error('image takes an https or data URL');
      send({ kind: 'image', url: String(url), detail: detail ?? null });
    },
    store(key, value) {
      const json = JSON.stringify(value);
      if (json === undefined) throw new Error('store takes a value that JSON can hold');
      values.set(String(key), JSON.parse(json));
      send({ kind: 'store', key: String(key), value: JSON.parse(json) });
    },
    load: (key) => structuredClone(values.get(String(key))),
    notify: (value) => send({ kind: 'notify', text: shown(value) }),
    yield_control: () => send({ kind: 'yield' }),
    exit() { throw EXIT; },
  };
  const context = vm.createContext(globals);
  vm.runInContext('delete globalThis.console', context);
  // Kept alive while the script waits for nothing that Node knows of.
  setInterval(() => {}, 1 << 30);
  try {
    const main = vm.runInContext(`(async () => {${code}\n})()`, context, { filename: 'exec_main.mjs' });
    main.then(() => end(false, ''), failure);
  } catch (error) {
    if (error instanceof Error || error?.name) end(true, `${error.name}: ${error.message}`);
    else failure(error);
  }
});
