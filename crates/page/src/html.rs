//! A result as one page, and what such pages are made of.
//!
//! A [`Page`] needs nothing but a browser: style, script, charts and the figures themselves are
//! inside, and a content security policy forbids fetching anything. It follows the reader's light
//! or dark setting, a narrow screen and paper. What a shape or a figure stands for is its
//! `data-tip`, which the page shows beside the pointer.
//!
//! An argument is text, which is escaped here, unless its description says that it is HTML.

use crate::units;

/// The style of every page.
const STYLE: &str = include_str!("page.css");
/// The script of every page: tips, printing, saving the figures.
const SCRIPT: &str = include_str!("page.js");
/// Items of a banner that are shown.
const ITEMS_MAX: usize = 50;

/// A whole page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// Its title and first heading.
    pub title: &'a str,
    /// What was measured, on what and when, below the title.
    pub facts: &'a str,
    /// The command line that made it; empty for none.
    pub command: &'a str,
    /// What it says, as HTML.
    pub main: &'a str,
    /// Paragraphs at its end.
    pub notes: &'a [&'a str],
    /// Rules of style that only this kind of page has.
    pub style: &'a str,
    /// The figures as JSON, for readers who want to calculate with them.
    pub figures: &'a str,
    /// The name under which a reader saves the figures.
    pub file: &'a str,
}

impl Page<'_> {
    /// The page as HTML.
    pub fn render(&self) -> String {
        let Page { main, style, .. } = self;
        let [title, facts, command, file] = [self.title, self.facts, self.command, self.file].map(escape);
        let command = if command.is_empty() { command } else { format!("<pre>{command}</pre>\n") };
        let notes: String = self.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
        let figures = inside_script(self.figures);
        format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{STYLE}{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="soft">{facts}</p>
{command}</header>
<main>
{main}</main>
<footer>
{notes}<button id="save" type="button" data-file="{file}">Save the figures as JSON</button>
</footer>
<div id="tip" aria-hidden="true"></div>
<script type="application/json" id="figures">
{figures}</script>
<script>
{SCRIPT}</script>
</body>
</html>
"#
        )
    }
}

/// Text that is safe between tags and inside quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // The only control characters that HTML allows are white space.
            c if c.is_control() && !c.is_ascii_whitespace() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// JSON that is safe inside a script element, which a `<` could end.
pub fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A part of a page under a heading, with a note below it, unless that is empty; its content is
/// HTML.
pub fn section(title: &str, note: &str, content: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>\n", escape(note)) };
    format!("<section>\n<h2>{}</h2>\n{note}{content}</section>\n", escape(title))
}

/// A table. Headers are text, cells are HTML, and the first cell of a row is its name. The last row
/// of a table of class `total` sums up the others.
pub fn table(class: &str, headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = format!("<div class=\"scroll\"><table class=\"{class}\">\n<thead><tr>");
    for header in headers {
        html.push_str(&format!("<th scope=\"col\">{}</th>", escape(header)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            html.push_str(&match column {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            });
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table></div>\n"
}

/// The figures that matter most, side by side: name, figure, a note below it.
pub fn tiles(tiles: &[(&str, String, String)]) -> String {
    let tile = |(name, figure, note): &(&str, String, String)| {
        let [name, figure, note] = [name, figure.as_str(), note.as_str()].map(escape);
        format!("<div><dt>{name}</dt><dd>{figure}<small>{note}</small></dd></div>\n")
    };
    format!("<dl class=\"strip\">\n{}</dl>\n", tiles.iter().map(tile).collect::<String>())
}

/// What a banner says of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// They can be trusted.
    Good,
    /// With care.
    Warn,
    /// They cannot.
    Bad,
}

/// A sentence that a reader must not overlook, and what it is about: both are HTML. Of many items
/// the first are shown.
pub fn banner(tone: Tone, sentence: &str, items: &[String]) -> String {
    let class = match tone {
        Tone::Good => r#""banner good""#,
        Tone::Warn => r#""banner warn""#,
        Tone::Bad => r#""banner bad" role="alert""#,
    };
    let mut list: String = items.iter().take(ITEMS_MAX).map(|item| format!("<li>{item}</li>")).collect();
    if let Some(more) = items.len().checked_sub(ITEMS_MAX).filter(|more| *more > 0) {
        list.push_str(&format!("<li>and {} more</li>", units::thousands(more as u64)));
    }
    if !list.is_empty() {
        list = format!("<ul>{list}</ul>");
    }
    format!("<div class={class}>{sentence}{list}</div>\n")
}

/// The banner of checks that all hold, by their number.
pub fn all_hold(checks: usize) -> String {
    let held = |words: &str| banner(Tone::Good, &format!("<span class=\"ok\">✓</span> {words}"), &[]);
    match checks {
        0 => banner(Tone::Warn, "Nothing was checked.", &[]),
        1 => held("The check holds."),
        n => held(&format!("All {} checks hold.", units::thousands(n as u64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_html_is_not() {
        assert_eq!(escape("<a href='x'>\"&\u{1}\n"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\n");
        let evil = "</script><script>alert('1')</script>";
        let page = Page {
            title: evil,
            facts: evil,
            command: evil,
            main: "<p>said</p>\n",
            notes: &[evil],
            figures: evil,
            file: evil,
            ..Page::default()
        };
        let page = page.render();
        assert!(!page.contains("<script>alert"), "a script got through");
        assert_eq!(page.matches("</script>").count(), 2, "only the page's own scripts end");
        assert!(page.contains("<p>said</p>"));
        let html = section(evil, evil, &table("", &[evil], &[vec!["<b>1</b>".into()]]))
            + &tiles(&[(evil, evil.into(), evil.into())]);
        assert!(!html.contains("<script>") && html.contains("<b>1</b>"), "{html}");
    }

    #[test]
    fn a_page_fetches_nothing() {
        let page = Page::default().render();
        for forbidden in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden} is in the page");
        }
    }

    #[test]
    fn a_banner_shows_fifty_items_and_counts_the_rest() {
        let banner = banner(Tone::Bad, "Failed.", &vec!["x".to_owned(); 1051]);
        assert_eq!(banner.matches("<li>x</li>").count(), 50);
        assert!(banner.contains("<li>and 1,001 more</li>") && banner.contains("role=\"alert\""), "{banner}");
        assert_eq!(all_hold(0), "<div class=\"banner warn\">Nothing was checked.</div>\n");
        assert!(
            all_hold(1).contains("The check holds.") && all_hold(1200).contains("All 1,200 checks hold.")
        );
    }
}
