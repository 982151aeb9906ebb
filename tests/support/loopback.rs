//! An HTTP server on a free port of this machine, for tests and benches.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::DefaultBodyLimit;

/// A server on a thread of its own; it ends when dropped.
pub struct LoopbackServer {
    address: SocketAddr,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LoopbackServer {
    pub fn start(router: Router) -> LoopbackServer {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener
            .set_nonblocking(true)
            .expect("a socket that does not block");
        let address = listener.local_addr().expect("an address");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let router = router.layer(DefaultBodyLimit::disable());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.expect("serving"),
                    _ = ended => {}
                }
            });
        });
        LoopbackServer {
            address,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// The root, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
