//! Lines of a stream that may say anything.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is kept, in bytes; what is beyond it is dropped.
const LINE_MAX: usize = 4096;

/// Reads lines, cut at [`LINE_MAX`], whatever bytes they consist of.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: Option<R>,
    ready: VecDeque<String>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: Option<R>) -> Lines<R> {
        Lines { source, ready: VecDeque::new(), line: Vec::new() }
    }

    /// The next line without its end; nothing at the end of the stream or after an error of it.
    ///
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            let mut block = [0; 4096];
            match self.source.as_mut()?.read(&mut block).await {
                Ok(0) | Err(_) => {
                    self.source = None;
                    if !self.line.is_empty() {
                        self.end_line();
                    }
                }
                Ok(length) => self.split(&block[..length]),
            }
        }
    }

    fn split(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        self.ready.push_back(String::from_utf8_lossy(&self.line).into_owned());
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_never_fail_whatever_the_bytes() {
        let mut bytes = b"one\n\n\xff\xfe\n".to_vec();
        bytes.extend(vec![b'x'; 3 * LINE_MAX]);
        bytes.extend(b"\nlast");
        let mut lines = Lines::new(Some(&bytes[..]));
        assert_eq!(lines.next().await.as_deref(), Some("one"));
        assert_eq!(lines.next().await.as_deref(), Some(""));
        assert_eq!(lines.next().await.as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(lines.next().await.map(|line| line.len()), Some(LINE_MAX));
        assert_eq!(lines.next().await.as_deref(), Some("last"));
        assert_eq!(lines.next().await, None);
        assert_eq!(lines.next().await, None);
    }
}
