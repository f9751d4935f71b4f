//! Keeps the documentation true.
//!
//! * `docs/lines.md` is the table of lines per protocol, timestamp scheme and workload. It is
//!   generated here: `UPDATE_DOCS=1 cargo test -p plimsoll-cli --test docs` writes it, and the test
//!   fails if it is stale. A line counts if it is neither blank nor a comment and does not belong
//!   to tests. New files are found by where they are.
//! * Relative links lead somewhere, headings and corner cases included, and so do the pages that
//!   comments in the code mention.
//! * Functions and variants that the documentation names (`Base::grant`) exist.
//! * Every template of Dike has its place in the guide to its experiments.
//! * Nothing refers to a place outside the repository.
//! * Protocol code names no clock, thread, socket or map with a random order: those come from
//!   `Env`.
//!
//! Left out: whether what a page says about a function is so.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

/// All files below a folder with this extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            if entry.file_name().is_some_and(|name| name != "target") {
                found.extend(files(&entry, extension));
            }
        } else if entry.extension().is_some_and(|other| other == extension) {
            found.push(entry);
        }
    }
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    pages
}

/// All sources but this one, which has to name what it looks for.
fn sources() -> Vec<PathBuf> {
    let this = Path::new(file!()).file_name().expect("a file has a name");
    let mut sources = files(&root().join("crates"), "rs");
    sources.retain(|path| path.file_name() != Some(this));
    sources
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// The lines of a source that are code, without comment lines, blank lines and test modules.
fn code(source: &str) -> Vec<&str> {
    let mut code = Vec::new();
    let mut lines = source.lines().peekable();
    let mut in_comment = false;
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if line.starts_with("#[cfg(") && line.contains("test") {
            // `mod tests {` ends the code; `mod tests;` is a line of it that does not count.
            match lines.next() {
                Some(next) if next.ends_with('{') => break,
                _ => continue,
            }
        }
        in_comment |= trimmed.starts_with("/*");
        if !in_comment && !trimmed.is_empty() && !trimmed.starts_with("//") {
            code.push(line);
        }
        in_comment &= !trimmed.contains("*/");
    }
    code
}

/// Lines of code of files and folders, test files excepted.
fn lines(paths: &[PathBuf]) -> usize {
    let is_test = |stem: &OsStr| stem == "tests" || stem == "testing";
    let is_code = |path: &PathBuf| {
        let below = path.strip_prefix(root()).expect("it is below the root");
        !is_test(path.file_stem().unwrap()) && !below.iter().any(is_test)
    };
    let all =
        paths.iter().flat_map(|path| if path.is_dir() { files(path, "rs") } else { vec![path.clone()] });
    all.filter(is_code).map(|path| code(&read(&path)).len()).sum()
}

/// The modules of a folder, each with its files: `x.rs`, `x/`, or both.
fn modules(folder: &Path, except: &[&str]) -> Vec<(String, Vec<PathBuf>)> {
    let mut modules: Vec<(String, Vec<PathBuf>)> = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let module = entry.file_stem().unwrap().to_string_lossy().into_owned();
        if except.contains(&module.as_str()) {
            continue;
        }
        match modules.iter_mut().find(|(known, _)| *known == module) {
            Some((_, files)) => files.push(entry),
            None => modules.push((module, vec![entry])),
        }
    }
    modules
}

/// The page that `docs/lines.md` has to be.
fn lines_page() -> String {
    let crates = root().join("crates");
    let txn = crates.join("txn/src");
    let mut page = "\
# Lines of code

Generated by `UPDATE_DOCS=1 cargo test -p plimsoll-cli --test docs`; do not edit. Counted are lines that are neither blank
nor comments nor tests. A protocol knows no scheme, a scheme no protocol, a workload neither; each pair of the first two
is a type, not a copy.
"
    .to_owned();
    let mut shared =
        modules(&txn, &["lib", "testing", "protocols", "timestamps", "words", "shard", "commit"]);
    for folder in ["words", "shard", "commit"] {
        let sorted = modules(&txn.join(folder), &["mod"]).into_iter();
        shared.extend(sorted.map(|(module, files)| (format!("{folder}/{module}"), files)));
    }
    let tables = [
        ("protocol", modules(&txn.join("protocols"), &["mod"])),
        ("timestamp scheme", modules(&txn.join("timestamps"), &["mod"])),
        ("workload", modules(&crates.join("workloads/src"), &["lib", "random", "testing"])),
        ("shared by all protocols and schemes", shared),
    ];
    for (title, modules) in tables {
        page += &format!("\n| {title} | lines |\n|---|--:|\n");
        let mut sum = 0;
        for (module, paths) in &modules {
            let count = lines(paths);
            sum += count;
            let note = match module.as_str() {
                "oracle" => " (shared by gts and vts)",
                "blocks" => " (shared by micro and smallbank)",
                _ => "",
            };
            page += &format!("| {module}{note} | {count} |\n");
        }
        page += &format!("| *together* | {sum} |\n");
    }
    page
}

#[test]
fn the_table_of_lines_is_current() {
    let path = root().join("docs/lines.md");
    let page = lines_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("docs/lines.md can be written");
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == page,
        "docs/lines.md is stale: run `UPDATE_DOCS=1 cargo test -p plimsoll-cli --test docs`; it has to be\n{page}"
    );
}

/// The lines of a page outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// What stands between each `open` and the next `close` of a line.
fn between<'a>(line: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    line.split(open).skip(1).filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

/// The targets that links into a page may name.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(page) {
        anchors.extend(between(line, "<a id=\"", "\"").map(str::to_owned));
        if line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    anchors
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut problems = Vec::new();
    for path in pages() {
        let page = read(&path);
        for link in prose(&page).flat_map(|line| between(line, "](", ")")) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            if !target.exists() {
                problems.push(format!("{} links to {link}, which does not exist", name(&path)));
            } else if !anchor.is_empty() && !anchors(&read(&target)).contains(anchor) {
                problems.push(format!("{} links to {link}, which has no such heading", name(&path)));
            }
        }
    }
    none(problems);
}

/// The pages `docs/….md` that a line mentions.
fn mentioned(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices("docs/").map(|(start, _)| {
        let path = line[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || "_-./".contains(*c));
        path.collect::<String>().trim_end_matches('.').to_owned()
    })
}

#[test]
fn pages_and_corner_cases_that_comments_mention_exist() {
    let cases = anchors(&read(&root().join("docs/protocols/dst.md")));
    let mut problems = Vec::new();
    for path in sources() {
        let source = read(&path);
        for line in source.lines().filter(|line| line.trim_start().starts_with("//")) {
            for page in mentioned(line) {
                if !root().join(&page).exists() {
                    problems.push(format!("{} mentions {page}, which does not exist", name(&path)));
                }
            }
            if !line.contains("docs/protocols/dst.md") {
                continue;
            }
            let words = line.split(|c: char| !c.is_ascii_alphanumeric());
            let is_case = |word: &&str| word.strip_prefix('C').is_some_and(|n| n.parse::<u32>().is_ok());
            for case in words.filter(is_case) {
                if !cases.contains(&case.to_lowercase()) {
                    problems
                        .push(format!("{} mentions corner case {case}, which is not listed", name(&path)));
                }
            }
        }
    }
    none(problems);
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn functions_fields_and_variants_that_pages_name_exist() {
    let mut words = BTreeSet::new();
    let mut functions = BTreeSet::new();
    let mut fields = BTreeSet::new();
    for path in sources() {
        let source = read(&path);
        let declared =
            source.lines().filter_map(|line| line.trim().trim_start_matches("pub ").split_once(": "));
        fields.extend(declared.map(|(field, _)| field.to_owned()));
        let mut last = "";
        for word in source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if last == "fn" {
                functions.insert(word.to_owned());
            }
            words.insert(word.to_owned());
            last = if word.is_empty() { last } else { word };
        }
    }
    let mut problems = Vec::new();
    for path in pages() {
        let page = read(&path);
        for line in prose(&page) {
            for span in line.split('`').skip(1).step_by(2) {
                let Some((owner, item)) = span.split_once("::") else { continue };
                if !is_identifier(owner) || !is_identifier(item) {
                    continue;
                }
                let known = match item.starts_with(|c: char| c.is_ascii_lowercase()) {
                    true => functions.contains(item) || fields.contains(item),
                    false => words.contains(item),
                };
                if !known || !words.contains(owner) {
                    problems.push(format!("{} names {span}, which does not exist", name(&path)));
                }
            }
        }
    }
    none(problems);
}

#[test]
fn nothing_refers_to_a_place_outside_the_repository() {
    let places =
        [concat!("..", "/shared"), concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];
    let mut problems = Vec::new();
    let mut all = pages();
    all.extend(sources());
    all.extend([".ci/run", "clippy.toml", "Cargo.toml"].map(|name| root().join(name)));
    for path in all {
        let text = read(&path);
        let found = places.iter().filter(|&&place| text.contains(place));
        problems.extend(found.map(|place| format!("{} refers to {place}", name(&path))));
    }
    none(problems);
}

#[test]
fn protocol_code_names_no_clock_thread_socket_or_random_order() {
    let banned = [
        "Instant",
        "SystemTime",
        "std::thread",
        "std::net",
        "std::fs",
        "HashMap",
        "HashSet",
        "RandomState",
        "Mutex",
        "RwLock",
    ];
    // The map is looked up by row, never iterated. The lock guards what all shards of a process
    // read, and the model of the watermark explores the interleavings. A simulated socket can be
    // sent to another thread, as real ones are, and never is.
    let allowed = [
        ("crates/store/src/tails.rs", "HashMap"),
        ("crates/runtime/src/watermark.rs", "RwLock"),
        ("crates/runtime/src/sim/socket.rs", "RwLock"),
    ];
    let mut problems = Vec::new();
    for member in ["types", "runtime", "store", "txn", "workloads"] {
        for path in files(&root().join("crates").join(member).join("src"), "rs") {
            let (path, source) = (name(&path), read(&path));
            if path.starts_with("crates/runtime/src/real") {
                continue;
            }
            for line in code(&source) {
                let line = line.split("//").next().unwrap_or_default();
                for word in banned {
                    if line.contains(word) && !allowed.contains(&(path.as_str(), word)) {
                        problems.push(format!("{path} names {word}: {}", line.trim()));
                    }
                }
            }
        }
    }
    none(problems);
}

#[test]
fn the_guide_to_the_experiments_names_every_template() {
    let guide = read(&root().join("docs/dike-experiments.md"));
    let names = plimsoll_dike::config::TEMPLATES.iter().map(|(name, _)| *name);
    // The reference is no experiment.
    let missing = |name: &&str| *name != "tpcc" && !guide.contains(&format!("`{name}`"));
    none(
        names
            .filter(missing)
            .map(|name| format!("docs/dike-experiments.md does not name `{name}`"))
            .collect(),
    );
}
