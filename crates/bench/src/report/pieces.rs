//! How a workload's transactions are cut into pieces for ROCOCO, as figures: the graph that its
//! offline checker looks at.

use plimsoll_txn::chopping::Chopping;
use plimsoll_types::TableSpec;
use serde::Serialize;

/// The graph. Pieces of one transaction type are siblings, joined by S-edges; they follow each
/// other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PieceGraph {
    /// `tpcc`, `smallbank`, `micro`.
    pub workload: String,
    /// All types of pieces.
    pub pieces: Vec<Piece>,
    /// Which of them conflict.
    pub c_edges: Vec<CEdge>,
}

/// A type of pieces.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Piece {
    /// The transaction type.
    pub transaction: String,
    /// Its name in it.
    pub name: String,
    /// Whether it executes when it starts, or waits until its transaction commits.
    pub immediate: bool,
    /// Why: the predicate of a sentence.
    pub reason: String,
    /// Whether a transaction may have several.
    pub many: bool,
}

/// Two pieces, perhaps the same, of which two transactions conflict.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CEdge {
    /// Positions in `pieces`, the smaller first.
    pub between: (usize, usize),
    /// Names of the columns that both touch and one may write.
    pub columns: Vec<String>,
}

impl PieceGraph {
    /// The graph of a checked workload.
    pub fn new(workload: &str, chopping: &Chopping, tables: &[TableSpec]) -> PieceGraph {
        let pieces = chopping.types.iter().enumerate().map(|(number, piece)| Piece {
            transaction: piece.transaction.to_owned(),
            name: piece.name.to_owned(),
            immediate: chopping.immediate(number),
            reason: chopping.reason(number),
            many: piece.many,
        });
        let c_edges = chopping
            .conflicts()
            .map(|(a, b)| CEdge { between: (a, b), columns: chopping.shared(a, b, tables) });
        PieceGraph { workload: workload.to_owned(), pieces: pieces.collect(), c_edges: c_edges.collect() }
    }

    /// Whether two transactions conflict in pieces that have executed before their order is known.
    pub fn is_immediate(&self, edge: &CEdge) -> bool {
        self.pieces[edge.between.0].immediate
    }
}
