//! Headless Chromium, driven by the DevTools protocol over a pair of pipes: JSON messages, each ended by a zero byte.

use crate::lab::Namespace;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// No answer and no change is waited for longer.
const PATIENCE: Duration = Duration::from_secs(30);
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A browser with one page.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    profile: PathBuf,
    /// What it told without being asked, the oldest first.
    pub events: Vec<Value>,
}

impl Browser {
    /// Starts one inside of a namespace, or on the host; says so and returns nothing where Chromium is not installed.
    pub fn start(inside: Option<&Namespace>) -> Option<Browser> {
        if Command::new("chromium").arg("--version").output().is_err() {
            eprintln!(
                "skipped: Chromium is not installed (apt-get install chromium; `cargo xtask test` does so)"
            );
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("linerate-chromium-{}-{number}", std::process::id()));
        // It wants the pipes as its descriptors 3 and 4.
        let line = format!(
            "exec chromium {FLAGS} --user-data-dir={} about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            profile.display()
        );
        let mut command = inside.map_or_else(|| Command::new("sh"), |namespace| namespace.command("sh"));
        command.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sh starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Browser { child, input, messages, session: None, next: 0, profile, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let wanted = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", wanted);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol, which must succeed.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.attempt(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol; the error is the browser's answer.
    pub fn attempt(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("Chromium takes messages");
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let mut message = message.unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.next {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            self.events.push(message);
        }
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, address: &str) {
        self.events.clear();
        let result = self.call("Page.navigate", json!({"url": address}));
        assert!(result["errorText"].is_null(), "{address}: {result}");
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            assert!(Instant::now() < deadline, "{address} is not loaded");
            self.rest();
        }
    }

    /// What an expression of JavaScript is in the page; promises are waited for.
    pub fn eval(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut result = self.call("Runtime.evaluate", wanted);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result:#}");
        result["result"]["value"].take()
    }

    /// The same as text.
    pub fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.eval(expression) != true {
            assert!(
                Instant::now() < deadline,
                "it does not become true that {expression}; the page:\n{}",
                self.text("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses the Enter key where the focus is.
    pub fn press_enter(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let mut key = json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13});
            if kind == "keyDown" {
                key["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// Looks as on a screen of this width in pixels, with light or dark colours preferred.
    pub fn screen(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Takes in what it tells for a moment.
    pub fn rest(&mut self) {
        if let Ok(event) = self.messages.recv_timeout(Duration::from_millis(100)) {
            self.events.push(event);
        }
    }

    /// The addresses that were asked for since the page was opened.
    pub fn requests(&self) -> Vec<&str> {
        let events = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        events.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    /// The content of the last answer whose address contains `part`.
    pub fn last_answer(&mut self, part: &str) -> String {
        let finished = |id: &Value| {
            let is_it = |event: &&Value| {
                event["method"] == "Network.loadingFinished" && event["params"]["requestId"] == *id
            };
            self.events.iter().any(|event| is_it(&event))
        };
        let answers = self.events.iter().rev().filter(|event| {
            let address = event["params"]["response"]["url"].as_str();
            event["method"] == "Network.responseReceived" && address.is_some_and(|url| url.contains(part))
        });
        let id = answers.map(|event| event["params"]["requestId"].clone()).find(finished);
        let body = self.call("Network.getResponseBody", json!({"requestId": id.expect("an answer")}));
        body["body"].as_str().expect("text").to_owned()
    }

    /// What went wrong in the page: exceptions, and what its policy forbade.
    pub fn faults(&self) -> Vec<&Value> {
        let is_fault = |event: &&Value| {
            // A server that is gone is in the log as a failure of the network: that is a state, not a fault.
            let is_network = event["params"]["entry"]["source"] == "network";
            event["method"] == "Runtime.exceptionThrown"
                || event["method"] == "Page.javascriptDialogOpening"
                || (event["method"] == "Log.entryAdded" && !is_network)
        };
        self.events.iter().filter(is_fault).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let message = json!({"id": 0, "method": "Browser.close"}).to_string();
        let _ = self.input.write_all(&[message.as_bytes(), b"\0"].concat());
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
