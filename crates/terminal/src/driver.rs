//! Carries out what the session decides: keys and messages in, bytes and messages out.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::{self, Event};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::connection::{ServerAddress, ServerConnection};
use crate::history_file::HistoryFile;
use crate::raw_terminal::{RawTerminal, typed_ahead};
use crate::rows::ScreenRow;
use crate::screen::{ScreenSize, ScreenWriter};
use crate::session::{SessionOptions, TerminalEffect, TerminalEvent, TerminalState};

/// How often the clock is drawn.
const TICK: Duration = Duration::from_millis(500);
/// Keys that may wait.
const WAITING: usize = 1_024;

/// Everything a session needs.
#[derive(Debug)]
pub struct TerminalSession {
    pub options: SessionOptions,
    pub server: ServerAddress,
    pub history: HistoryFile,
}

impl TerminalSession {
    /// Runs to its end; whether that was a good one.
    pub async fn run(mut self) -> Result<bool> {
        self.options.history = self.history.read();
        let can_redraw = self.options.style.can_redraw;
        let connection = ServerConnection::open(&self.server).await?;
        let terminal = if can_redraw {
            Some(RawTerminal::enter().context("the terminal cannot be used")?)
        } else {
            None
        };
        let events = if can_redraw { keys() } else { typed_lines() };
        let driver = SessionDriver {
            screen: ScreenWriter::new(self.options.style),
            size: self.options.size,
            state: TerminalState::new(self.options),
            began: Instant::now(),
            history: self.history,
            connection,
            terminal,
        };
        driver.run(events).await
    }
}

struct SessionDriver {
    state: TerminalState,
    screen: ScreenWriter,
    size: ScreenSize,
    began: Instant,
    history: HistoryFile,
    connection: ServerConnection,
    terminal: Option<RawTerminal>,
}

impl SessionDriver {
    async fn run(mut self, mut events: mpsc::Receiver<TerminalEvent>) -> Result<bool> {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut effects = self.state.begin();
        loop {
            if let Some(is_good) = self.perform(effects).await? {
                drop(self.terminal.take());
                self.connection.close().await;
                return Ok(is_good);
            }
            let event = tokio::select! {
                event = events.recv() => event.unwrap_or(TerminalEvent::Stop),
                message = self.connection.incoming.recv() => match message {
                    Some(message) => TerminalEvent::Message(message),
                    None => TerminalEvent::Lost(self.connection.last_words().await),
                },
                _ = tick.tick() => TerminalEvent::Tick,
                _ = terminated.recv() => TerminalEvent::Stop,
                _ = hung_up.recv() => TerminalEvent::Stop,
                _ = interrupted.recv() => TerminalEvent::Stop,
            };
            effects = self.feed(event);
            // Messages that came in the meantime are drawn together with it.
            for _ in 0..WAITING {
                let Ok(message) = self.connection.incoming.try_recv() else { break };
                effects.extend(self.feed(TerminalEvent::Message(message)));
            }
        }
    }

    fn feed(&mut self, event: TerminalEvent) -> Vec<TerminalEffect> {
        if let TerminalEvent::Resized(size) = event {
            self.size = size;
        }
        self.state.on(self.began.elapsed(), event)
    }

    /// Carries out effects and draws. How the session ended, if it did.
    async fn perform(&mut self, effects: Vec<TerminalEffect>) -> Result<Option<bool>> {
        let mut added: Vec<ScreenRow> = Vec::new();
        let mut ended = None;
        for effect in effects {
            match effect {
                TerminalEffect::Send(message) => self.connection.send(&message).await,
                TerminalEffect::Print(rows) => added.extend(rows),
                TerminalEffect::Remember(text) => self.history.add(&text),
                TerminalEffect::Sleep => self.sleep()?,
                TerminalEffect::Leave { is_good } => ended = Some(is_good),
            }
        }
        let out = match ended {
            Some(_) => self.screen.finish(&added, self.size),
            None => self.screen.frame(&added, self.state.region(), self.size),
        };
        let shown = write(&out);
        if ended.is_none() {
            shown.context("the terminal cannot be written to")?;
        }
        Ok(ended)
    }

    /// Stops the process as the shell's users expect, and draws anew when it goes on.
    fn sleep(&mut self) -> Result<()> {
        let Some(terminal) = self.terminal.take() else { return Ok(()) };
        write(&self.screen.finish(&[], self.size))?;
        drop(terminal);
        crate::raw_terminal::stop_process();
        self.terminal = Some(RawTerminal::enter()?);
        Ok(())
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Keys are read by a thread of their own, which ends with the process.
fn keys() -> mpsc::Receiver<TerminalEvent> {
    let (told, keys) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        for key in typed_ahead() {
            if told.blocking_send(TerminalEvent::Key(key)).is_err() {
                return;
            }
        }
        while let Ok(event) = event::read() {
            let event = match event {
                Event::Key(key) => TerminalEvent::Key(key),
                Event::Paste(text) => TerminalEvent::Paste(text),
                Event::Resize(columns, rows) => {
                    TerminalEvent::Resized(ScreenSize { columns: columns.into(), rows: rows.into() })
                }
                Event::FocusGained | Event::FocusLost | Event::Mouse(_) => continue,
            };
            if told.blocking_send(event).is_err() {
                return;
            }
        }
    });
    keys
}

fn typed_lines() -> mpsc::Receiver<TerminalEvent> {
    let (told, lines) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut input = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = input.next_line().await {
            if told.send(TerminalEvent::Typed(line)).await.is_err() {
                return;
            }
        }
    });
    lines
}
