//! Stopping a run: SIGTERM and SIGINT ask for it, and the phases look whether it was asked.
//!
//! Docker kills ten seconds after SIGTERM. Until then a run has to stop starting things, drop
//! what can be dropped, and print what it did. What must not be cut short is a commit and a
//! prune; everything else leaves at most files that no version refers to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::error::{ErrorKind, GuardError, Result};
use crate::exit::Exit;

/// A request to stop that everything in a run shares.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    /// Whether a step is at work, which then prints its outputs itself.
    working: AtomicBool,
    reason: OnceLock<&'static str>,
    notify: Notify,
}

impl Stop {
    /// One that SIGTERM and SIGINT ask. The second signal ends the process at once, and so does
    /// the first while no step is at work.
    #[must_use]
    pub fn on_signals() -> Self {
        let stop = Self::default();
        let asked = stop.clone();
        // Without a thread or a runtime for it, signals do what they always do.
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(asked.listen());
                }
            });
        stop
    }

    async fn listen(self) {
        let (Ok(mut term), Ok(mut interrupt)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) else {
            return;
        };
        loop {
            let reason = tokio::select! {
                _ = term.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if self.is_asked() || !self.0.working.load(Ordering::SeqCst) {
                std::process::exit(i32::from(Exit::Stopped.code()));
            }
            self.ask(reason);
        }
    }

    /// A step begins, which will answer for itself.
    pub fn step_begins(&self) {
        self.0.working.store(true, Ordering::SeqCst);
    }

    /// Asks to stop, for a reason that a person understands.
    pub fn ask(&self, reason: &'static str) {
        let _ = self.0.reason.set(reason);
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Whether it was asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Waits until it is asked.
    pub async fn asked(&self) {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        // Registered before the look, so that a request between the two is not missed.
        notified.as_mut().enable();
        if !self.is_asked() {
            notified.await;
        }
    }

    /// Nothing, or `stopped` if it was asked.
    ///
    /// # Errors
    /// `stopped`.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Does something that may be dropped at any time, and drops it when it is asked.
    ///
    /// # Errors
    /// `stopped`, or what the work itself meets.
    pub async fn or<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.asked() => Err(self.error()),
            result = work => result,
        }
    }

    /// The error of a run that stopped.
    #[must_use]
    pub fn error(&self) -> GuardError {
        let reason = self.0.reason.get().unwrap_or(&"a request");
        GuardError::new(ErrorKind::Stopped, format!("stopped by {reason}"))
            .hint("The table is whole. Running again goes on from what was committed.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_dropped_when_a_stop_is_asked_before_or_during_it() {
        let stop = Stop::default();
        assert_eq!(stop.or(async { Ok(1) }).await.unwrap(), 1);
        let asking = stop.clone();
        let never = stop.or(std::future::pending::<Result<()>>());
        let (result, ()) = tokio::join!(never, async move { asking.ask("SIGTERM") });
        let error = result.unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::Stopped, 143));
        assert_eq!(error.message, "stopped by SIGTERM");
        assert!(stop.or(async { Ok(1) }).await.is_err());
        stop.asked().await;
    }
}
