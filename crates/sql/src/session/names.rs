//! What names mean: descriptors that are looked up in the session's transaction.
//!
//! Analysis does not wait. It asks for tables by name, and if one is asked for that has not been
//! looked up in this transaction, the name is noted, the table is looked up, and analysis begins
//! again ([`Names`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pg_query::protobuf::Node;
use plimsoll_types::mutants::{Mutant, planted};

use super::conversation::Session;
use super::settings::Settings;
use super::{Stop, World};
use crate::analyze::{Catalog, Query, ShownSetting, analyze, unsupported};
use crate::catalog::pg::{Naming, NodeSight, Objects};
use crate::catalog::{PUBLIC, Relation, Table};
use crate::encoding::descriptor::{descriptor_key, descriptors_prefix};
use crate::encoding::key::after_prefix;
use crate::functions::confused;
use crate::store::{Range, Space};
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// Descriptors that a session keeps at most.
const DECODED_MAX: usize = 256;

/// Tables of plans whose descriptors a session knows at most.
const MET_MAX: usize = 16;

/// A table that a statement was planned for, and where and how its descriptor is stored.
pub(super) struct Met {
    table: Arc<Table>,
    key: Vec<u8>,
    bytes: Vec<u8>,
}

/// A schema and a name in it.
pub(super) type Name = (String, String);

impl<W: World> Session<'_, W> {
    /// Plans a statement.
    pub(super) async fn plan(&mut self, node: &Node, text: &str, given: &[Oid]) -> Result<Query, Stop> {
        self.analyzed(|names| analyze(node, text, given, names)).await
    }

    /// Analyzes: again and again until all relations are known that it asks for.
    pub(super) async fn analyzed<T>(
        &mut self,
        analysis: impl Fn(&dyn Catalog) -> Result<T, SqlError>,
    ) -> Result<T, Stop> {
        loop {
            let open = self.data.open.as_ref();
            let names = Names {
                settings: &self.settings,
                relations: open.map(|open| &open.relations),
                objects: open.and_then(|open| open.objects.as_ref()),
                wanted: RefCell::new(None),
            };
            let analyzed = analysis(&names);
            match (names.wanted.into_inner(), analyzed) {
                (Some(Wanted::Name((schema, name))), _) => drop(self.look_up(schema, name).await?),
                (Some(Wanted::All), _) => drop(self.look_up_all().await?),
                (None, analyzed) => return Ok(analyzed?),
            }
        }
    }

    /// What has a name in a schema.
    pub(super) async fn look_up(&mut self, schema: String, name: String) -> Result<Option<Relation>, Stop> {
        self.open().await?;
        let name = (schema, name);
        let known = self.data.open.as_ref().and_then(|open| open.relations.get(&name));
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let keys = [descriptor_key(&name.0, &name.1)];
        let found = match planted(Mutant::DescriptorUnvalidated) && !self.data.has_written() {
            true => self.get_newest(Space::Copied, &keys).await?,
            false => self.get(Space::Copied, &keys).await?,
        };
        let bytes = found.into_iter().next().flatten();
        let relation = match bytes {
            Some(bytes) => Some(self.decoded(&name, bytes)?),
            None => None,
        };
        self.data.learn(&name.0, &name.1, relation.clone());
        Ok(relation)
    }

    /// The descriptor of some bytes: the one of before, if these are the bytes of before.
    fn decoded(&mut self, name: &Name, bytes: Vec<u8>) -> Result<Relation, SqlError> {
        if let Some((known, relation)) = self.decoded.get(name)
            && *known == bytes
        {
            return Ok(relation.clone());
        }
        let relation = Relation::from_bytes(&bytes)?;
        if self.decoded.len() >= DECODED_MAX {
            self.decoded.clear();
        }
        self.decoded.insert(name.clone(), (bytes, relation.clone()));
        Ok(relation)
    }

    /// A table by its schema and name; anything else of that name is an error.
    pub(super) async fn look_up_table(
        &mut self,
        schema: String,
        name: String,
    ) -> Result<Option<Arc<Table>>, Stop> {
        match self.look_up(schema, name.clone()).await? {
            None => Ok(None),
            Some(Relation::Table(table)) => Ok(Some(table)),
            Some(Relation::Index(_) | Relation::Sequence(_)) => {
                let error = format!("\"{name}\" is not a table");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).into())
            }
        }
    }

    /// Forgets what names of the catalog are and the rows that were made of it: they may be many,
    /// and the session waits for its client.
    pub(super) fn forget_names(&mut self) {
        self.objects = None;
        self.style.names = None;
    }

    /// All tables. What is read and written by names from now on knows them.
    pub(super) async fn look_up_all(&mut self) -> Result<Arc<Objects>, Stop> {
        self.open().await?;
        let known = self.data.open.as_ref().and_then(|open| open.objects.clone());
        let objects = match known {
            Some(objects) => objects,
            None => {
                let found = Objects::new(self.all_relations().await?);
                // Rows that were made serve as long as tables are the same.
                let objects = match self.objects.take() {
                    Some(last) if *last == found => last,
                    _ => Arc::new(found),
                };
                self.objects = Some(Arc::clone(&objects));
                objects
            }
        };
        if let Some(open) = &mut self.data.open {
            open.objects = Some(Arc::clone(&objects));
        }
        self.style.names = Some(Arc::new(Naming::new(Arc::clone(&objects), &self.settings)));
        Ok(objects)
    }

    /// All that has a name, with what the transaction has changed.
    pub(super) async fn all_relations(&mut self) -> Result<Vec<Relation>, Stop> {
        self.open().await?;
        let low = descriptors_prefix(None);
        let high = after_prefix(&low);
        let mut left = Some(Range { space: Space::Copied, low, high, reverse: false });
        let mut relations = Vec::new();
        while let Some(range) = left.take() {
            let (pairs, rest) = self.scan_open(range, usize::MAX).await?;
            for (_, value) in pairs {
                relations.push(Relation::from_bytes(&value)?);
            }
            left = rest;
        }
        Ok(relations)
    }

    /// Whether a table is still this one.
    async fn is_still(&mut self, table: &Arc<Table>) -> Result<bool, Stop> {
        self.open().await?;
        let Some(open) = &self.data.open else { return Err(confused().into()) };
        if open.current.iter().any(|it| Arc::ptr_eq(it, table)) {
            return Ok(true);
        }
        // What the transaction has looked up, or made, it knows by name.
        let known = self.met.iter().find(|met| Arc::ptr_eq(&met.table, table));
        let known = known.filter(|_| open.relations.is_empty() && !planted(Mutant::DescriptorUnvalidated));
        if let Some(key) = known.map(|met| met.key.clone()) {
            let found = self.get(Space::Copied, &[key]).await?;
            let bytes = found.into_iter().next().flatten();
            let is_same = |met: &Met| Arc::ptr_eq(&met.table, table) && bytes.as_ref() == Some(&met.bytes);
            if let (true, Some(open)) = (self.met.iter().any(is_same), &mut self.data.open) {
                open.current.push(table.clone());
                return Ok(true);
            }
        }
        let found = self.look_up(table.schema.clone(), table.name.clone()).await?;
        if !matches!(&found, Some(Relation::Table(found)) if found == table) {
            return Ok(false);
        }
        // What the transaction has made is known without its bytes.
        let name = (table.schema.clone(), table.name.clone());
        if let Some((bytes, Relation::Table(decoded))) = self.decoded.get(&name)
            && decoded == table
        {
            let met =
                Met { table: table.clone(), key: descriptor_key(&name.0, &name.1), bytes: bytes.clone() };
            if self.met.len() >= MET_MAX {
                self.met.clear();
            }
            self.met.push(met);
        }
        Ok(true)
    }

    /// Whether the tables and sequences of a query are still what it was planned for.
    pub(super) async fn is_current(&mut self, query: &Query) -> Result<bool, Stop> {
        if let Some(objects) = &query.objects
            && *self.look_up_all().await? != **objects
        {
            return Ok(false);
        }
        for table in &query.tables {
            if !self.is_still(table).await? {
                return Ok(false);
            }
        }
        for sequence in &query.sequences {
            let found = self.look_up(sequence.schema.clone(), sequence.name.clone()).await?;
            if !matches!(&found, Some(Relation::Sequence(_))) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The schema that a name without one is looked for in, and that new tables are made in.
pub(super) fn schema_of(named: &str) -> &str {
    if named.is_empty() { PUBLIC } else { named }
}

/// What analysis asks about the session, with what is known of tables.
pub(super) struct Names<'a> {
    pub settings: &'a Settings,
    pub relations: Option<&'a BTreeMap<Name, Option<Relation>>>,
    pub objects: Option<&'a Arc<Objects>>,
    /// What was asked for and is not known.
    pub wanted: RefCell<Option<Wanted>>,
}

/// What has to be looked up before analysis can go on.
pub(super) enum Wanted {
    /// What a name stands for.
    Name(Name),
    /// All that has a name.
    All,
}

impl Catalog for Names<'_> {
    fn setting(&self, name: &str) -> Option<String> {
        self.settings.setting(name)
    }

    fn set(&self, name: &str, value: &str, local: bool) -> Result<String, SqlError> {
        self.settings.set(name, value, local)
    }

    fn user(&self) -> &str {
        self.settings.user()
    }

    fn database(&self) -> &str {
        self.settings.database()
    }

    fn relation(&self, schema: &str, name: &str) -> Result<Option<Relation>, SqlError> {
        let name = (schema_of(schema).to_owned(), name.to_owned());
        match self.relations.and_then(|relations| relations.get(&name)) {
            Some(relation) => Ok(relation.clone()),
            None => {
                self.wanted.replace(Some(Wanted::Name(name)));
                Err(confused())
            }
        }
    }

    fn objects(&self) -> Result<Arc<Objects>, SqlError> {
        self.objects.cloned().ok_or_else(|| {
            self.wanted.replace(Some(Wanted::All));
            confused()
        })
    }
}

/// What a run asks about the session.
pub(super) struct Known<'a> {
    pub settings: &'a Settings,
    pub objects: Option<&'a Arc<Objects>>,
    pub backend: i32,
    pub node: &'a dyn NodeSight,
    pub now_us: i64,
}

impl Catalog for Known<'_> {
    fn setting(&self, name: &str) -> Option<String> {
        self.settings.setting(name)
    }

    fn set(&self, name: &str, value: &str, local: bool) -> Result<String, SqlError> {
        self.settings.set(name, value, local)
    }

    fn user(&self) -> &str {
        self.settings.user()
    }

    fn database(&self) -> &str {
        self.settings.database()
    }

    fn relation(&self, schema: &str, name: &str) -> Result<Option<Relation>, SqlError> {
        self.settings.relation(schema, name)
    }

    fn objects(&self) -> Result<Arc<Objects>, SqlError> {
        self.objects.cloned().ok_or_else(|| unsupported("a name of the catalog in this place"))
    }

    fn settings(&self) -> Vec<ShownSetting> {
        self.settings.settings()
    }

    fn backend(&self) -> i32 {
        self.backend
    }

    fn node(&self) -> Option<&dyn NodeSight> {
        Some(self.node)
    }

    fn now_us(&self) -> i64 {
        self.now_us
    }
}
