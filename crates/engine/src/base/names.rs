//! Strings that are compared often are interned once and compared as numbers.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{Symbol, Table};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Names {
    symbols: FxHashMap<Arc<str>, Symbol>,
    texts: Table<Symbol, Arc<str>>,
}

impl Names {
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.symbols.get(text) {
            return symbol;
        }
        let text: Arc<str> = text.into();
        let symbol = self.texts.push(text.clone());
        self.symbols.insert(text, symbol);
        symbol
    }

    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.symbols.get(text).copied()
    }

    pub fn text(&self, symbol: Symbol) -> &Arc<str> {
        &self.texts[symbol]
    }
}
