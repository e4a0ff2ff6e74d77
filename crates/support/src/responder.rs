//! The response channel of a request.

use std::fmt;

/// Called once with the outcome of a request, before anything that follows from it is published: a response sent from
/// here arrives first. Must not block.
pub struct Responder<T, E>(Box<dyn FnOnce(Result<T, E>) + Send>);

impl<T, E> Responder<T, E> {
    pub fn new(respond: impl FnOnce(Result<T, E>) + Send + 'static) -> Self {
        Self(Box::new(respond))
    }

    pub fn respond(self, outcome: Result<T, E>) {
        (self.0)(outcome);
    }

    /// Converts the error type.
    pub fn from_error<F>(self) -> Responder<T, F>
    where
        T: 'static,
        E: From<F> + 'static,
        F: 'static,
    {
        Responder::new(move |outcome: Result<T, F>| self.respond(outcome.map_err(E::from)))
    }
}

impl<T, E> fmt::Debug for Responder<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn another_error_is_converted_on_the_way_back() {
        let (sender, receiver) = mpsc::channel();
        let responder: Responder<u8, String> = Responder::new(move |outcome| {
            sender.send(outcome).expect("received below");
        });
        responder.from_error::<&str>().respond(Err("no"));
        assert_eq!(receiver.recv(), Ok(Err("no".to_owned())));
    }
}
