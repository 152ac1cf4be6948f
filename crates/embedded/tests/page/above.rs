//! An echo server.

use embedded_io_async::{Read, Write};
use linerate_embedded::{Clock, Error, Listener, Net};
use linerate_transport::{Engine, ListenAddr, ListenOptions};

/// Sends back what comes, to two clients at a time.
pub async fn echo(net: &Net<impl Engine, impl Clock>) -> Result<(), Error> {
    let listener = net.listen(ListenAddr { ip: None, port: 7 }, &ListenOptions::default())?;
    futures::future::join(serve(&listener), serve(&listener)).await;
    Ok(())
}

async fn serve(listener: &Listener<'_>) {
    let mut buffer = [0; 512];
    loop {
        let mut socket = listener.accept().await;
        // A connection that breaks is no reason to end.
        while let Ok(len @ 1..) = socket.read(&mut buffer).await {
            if socket.write_all(&buffer[..len]).await.is_err() {
                break;
            }
        }
    }
}
