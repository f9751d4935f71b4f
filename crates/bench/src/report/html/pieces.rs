//! The pieces of a workload as a picture: cards from top to bottom, by transaction type.
//!
//! S-edges are at the left of the cards, C-edges at the right: each has a lane of its own, and at
//! both ends a line of text above it that names the piece at the other end and what they share, so
//! that a reader need not follow a lane. A loop is a conflict between two transactions of one type.
//! A piece that executes when its transaction starts is filled and its conflicts are solid; a piece
//! that waits is hollow and dashed, which does not need colours.

use std::fmt::Write;

use plimsoll_page::html::{escape, section};

use super::super::pieces::{CEdge, PieceGraph};

/// Left and right edge of the cards, in pixels.
const LEFT: usize = 34;
const RIGHT: usize = 400;
/// Where the first C-edge turns, and how far the lanes are apart.
const LANES: usize = RIGHT + 350;
const LANE: usize = 14;
/// Height of the end of a C-edge, with its text.
const PORT: usize = 22;
/// The least height of a card: its name and its reason.
const CARD: usize = 46;
/// Space for the name of a transaction type, and between cards.
const HEADING: usize = 36;
const GAP: usize = 10;
/// Maximum number of columns that are named beside an edge; all are shown beside the pointer.
const NAMED: usize = 3;

/// Where a card is, and how many of its edges are drawn.
struct Card {
    top: usize,
    height: usize,
    drawn: usize,
}

impl Card {
    /// Where its next edge ends.
    fn port(&mut self) -> usize {
        self.drawn += 1;
        self.top + PORT * self.drawn - 4
    }
}

/// The section with the picture.
pub fn pieces(graph: &PieceGraph) -> String {
    let note = "What executes when it starts is filled; what waits for its transaction's commit is hollow. Pieces of \
                one transaction are joined at the left (S-edges), pieces of two transactions that conflict at the \
                right (C-edges; a loop joins two transactions of one type). Dashed conflicts are put in order before \
                anything executes. Solid ones are not, so a transaction may have only one piece with such conflicts: \
                then no cycle is without a dashed one.";
    section("Pieces", note, &picture(graph))
}

fn picture(graph: &PieceGraph) -> String {
    let (mut cards, bottom) = place(graph);
    let lanes = graph.c_edges.iter().filter(|edge| edge.between.0 != edge.between.1).count();
    let (width, height) = (LANES + LANE * (lanes + 1), bottom + GAP);
    let mut svg = format!(
        "<div class=\"chart\"><svg role=\"img\" aria-label=\"Pieces and their conflicts\" width=\"{width}\" \
         height=\"{height}\" style=\"width:{width}px\">\n"
    );
    let mut siblings_from = 0;
    for (number, piece) in graph.pieces.iter().enumerate() {
        let Card { top, height, .. } = cards[number];
        if number == 0 || graph.pieces[number - 1].transaction != piece.transaction {
            siblings_from = number;
            let (name, base) = (escape(&piece.transaction), top - 9);
            add(&mut svg, format_args!("<text class=\"name\" x=\"0\" y=\"{base}\">{name}</text>\n"));
        }
        let middle = |card: &Card| card.top + card.height / 2;
        if siblings_from < number {
            let (from, to) = (middle(&cards[number - 1]), middle(&cards[number]));
            let across = LEFT - 16;
            let path = format!("M{LEFT} {from}H{across}V{to}H{LEFT}");
            add(
                &mut svg,
                format_args!(
                    "<path d=\"{path}\" fill=\"none\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/>\n"
                ),
            );
        }
        let (colour, filled, dashes) = style(piece.immediate);
        let (name_at, reason_at, text) = (top + 19, top + 37, LEFT + 12);
        let reason = piece.reason.replacen("is immediate because", "at once:", 1);
        let (width, name, reason) = (RIGHT - LEFT, escape(&piece.name), escape(&reason));
        let many = match piece.many {
            true => r#"<tspan class="small" font-weight="400" dx="8">one or several</tspan>"#,
            false => "",
        };
        add(
            &mut svg,
            format_args!(
                r#"<rect x="{LEFT}" y="{top}" width="{width}" height="{height}" rx="5" fill="{colour}" fill-opacity="{filled}" stroke="{colour}" stroke-width="1.5"{dashes}/>
<text class="name" x="{text}" y="{name_at}">{name}{many}</text><text class="small" x="{text}" y="{reason_at}">{reason}</text>
"#
            ),
        );
    }
    let mut lane = LANES;
    for edge in &graph.c_edges {
        let (a, b) = edge.between;
        let from = cards[a].port();
        if a == b {
            let (low, x, out) = (from - 9, RIGHT, RIGHT + 20);
            let path = format!("M{x} {low}C{out} {low} {out} {from} {x} {from}");
            end(&mut svg, graph, edge, &path, &[(b, RIGHT + 24, from)]);
        } else {
            let to = cards[b].port();
            let path = format!("M{RIGHT} {from}H{lane}V{to}H{RIGHT}");
            end(&mut svg, graph, edge, &path, &[(b, RIGHT + 24, from - 4), (a, RIGHT + 24, to - 4)]);
            lane += LANE;
        }
    }
    svg + "</svg></div>\n"
}

/// The cards, and where the last one ends.
fn place(graph: &PieceGraph) -> (Vec<Card>, usize) {
    let mut cards: Vec<Card> = Vec::new();
    let mut bottom = 0;
    for (number, piece) in graph.pieces.iter().enumerate() {
        let first = number == 0 || graph.pieces[number - 1].transaction != piece.transaction;
        let ends = |edge: &&CEdge| edge.between.0 == number || edge.between.1 == number;
        let height = CARD.max(PORT * graph.c_edges.iter().filter(ends).count() + 6);
        let top = bottom + if first { HEADING } else { GAP };
        bottom = top + height;
        cards.push(Card { top, height, drawn: 0 });
    }
    (cards, bottom)
}

/// A C-edge, with what it says at its ends: the piece at the other, and where the text begins.
fn end(svg: &mut String, graph: &PieceGraph, edge: &CEdge, path: &str, ends: &[(usize, usize, usize)]) {
    let (colour, _, dashes) = style(graph.is_immediate(edge));
    let full = |piece: usize| format!("{}.{}", graph.pieces[piece].transaction, graph.pieces[piece].name);
    let (a, b) = (full(edge.between.0), full(edge.between.1));
    let tip = escape(&format!("{a} – {b}\n{}", edge.columns.join(", ")));
    add(
        svg,
        format_args!(
            "<g data-tip=\"{tip}\"><path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}/>\n"
        ),
    );
    let mut columns = edge.columns.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if edge.columns.len() > NAMED {
        _ = write!(columns, " and {} more", edge.columns.len() - NAMED);
    }
    for &(other, x, y) in ends {
        let other = match edge.between.0 == edge.between.1 {
            true => String::new(),
            false => format!("{}: ", full(other)),
        };
        let text = escape(&format!("{other}{columns}"));
        add(svg, format_args!("<text class=\"small\" x=\"{x}\" y=\"{y}\">{text}</text>\n"));
    }
    svg.push_str("</g>\n");
}

/// Colour, opacity of what is filled with it, and dashes.
fn style(immediate: bool) -> (&'static str, &'static str, &'static str) {
    match immediate {
        true => ("var(--s1)", ".16", ""),
        false => ("var(--s0)", "0", " stroke-dasharray=\"5 3\""),
    }
}

fn add(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    svg.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use plimsoll_workloads::Workload;
    use plimsoll_workloads::tpcc::{Parameters, Tpcc};

    use super::super::super::model::Document;
    use super::super::render;
    use super::*;

    fn tpcc() -> PieceGraph {
        let tpcc = Tpcc::new(Parameters::new(2)).expect("the parameters are valid");
        PieceGraph::new(Tpcc::NAME, &tpcc.chopping().expect("it is legal"), &tpcc.tables())
    }

    #[test]
    fn every_piece_has_a_card_and_every_conflict_a_line_with_its_columns() {
        let graph = tpcc();
        let svg = picture(&graph);
        assert_eq!(svg.matches("<rect").count(), graph.pieces.len());
        assert_eq!(svg.matches("<g data-tip").count(), graph.c_edges.len());
        // S-edges: two each of an order's and a payment's three pieces.
        assert_eq!(svg.matches("stroke=\"var(--ink)\"").count(), 4);
        assert_eq!(svg.matches("fill-opacity=\".16\"").count(), 5, "five execute when they start");
        for text in ["delivery.deliver: order, new_order, order_line", "payment.customer: customer", "stock"]
        {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
    }

    #[test]
    fn cards_are_as_high_as_the_ends_of_their_edges_and_do_not_overlap() {
        let graph = tpcc();
        let (mut cards, bottom) = place(&graph);
        assert!(cards.windows(2).all(|pair| pair[0].top + pair[0].height < pair[1].top));
        for (a, b) in graph.c_edges.iter().map(|edge| edge.between) {
            for number in if a == b { vec![a] } else { vec![a, b] } {
                let port = cards[number].port();
                assert!((cards[number].top..=cards[number].top + cards[number].height).contains(&port));
            }
        }
        assert!(cards.last().is_some_and(|card| card.top + card.height == bottom));
    }

    #[test]
    fn a_page_of_pieces_alone_is_titled_and_escaped() {
        let mut graph = tpcc();
        graph.pieces[0].name = "<lines>".to_owned();
        let page = render(&Document { pieces: Some(graph), ..Document::default() });
        assert!(page.contains("<title>Pieces of TPC-C</title>") && page.contains("&lt;lines&gt;"));
        assert!(!page.contains("<lines>"));
    }
}
