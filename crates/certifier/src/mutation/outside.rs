//! Names that act on something no case compares: files, processes, the network, the environment.
//!
//! A name is the program's own where its file declares it, or takes it from a module of the program.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::names;
use super::survey::Silence;
use super::syntax::plain;
use super::walker::Walker;

/// Names that act outside the program, wherever they stand.
const ACTING: &[&str] = &[
    "remove_file",
    "remove_dir",
    "remove_dir_all",
    "create_dir",
    "create_dir_all",
    "hard_link",
    "set_permissions",
    "set_times",
    "set_modified",
    "chown",
    "fchown",
    "lchown",
    "chroot",
    "ToSocketAddrs",
    "set_var",
    "remove_var",
    "set_current_dir",
    "create_new",
    "OpenOptions",
    "DirBuilder",
    "Command",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
];

/// Names that do so behind `fs::` or `File::`.
const ACTING_ON_FILES: &[&str] = &[
    "write",
    "rename",
    "copy",
    "symlink",
    "create",
    "soft_link",
    "options",
];

/// Modules of which no import may take everything.
const ACTING_MODULES: &[&str] = &["std", "fs", "File", "net", "process", "env"];

/// Methods of the standard library that do so.
const ACTING_METHODS: &[&str] = &[
    "set_permissions",
    "set_times",
    "set_modified",
    "set_len",
    "to_socket_addrs",
    "write_at",
    "write_all_at",
];

/// Whether a path, given by its names, acts on something that no case compares.
pub(super) fn acts_outside(names: &[String]) -> bool {
    let acting = names.iter().any(|name| ACTING.contains(&name.as_str()));
    let on_files = names.windows(2).any(|pair| match pair {
        [folder, name] if name == "*" => ACTING_MODULES.contains(&folder.as_str()),
        [folder, name] => {
            ["fs", "File"].contains(&folder.as_str()) && ACTING_ON_FILES.contains(&name.as_str())
        }
        _ => false,
    });
    // `File::set_len(&f, 0)` is `f.set_len(0)`.
    let method = |name: &String| names.len() > 1 && ACTING_METHODS.contains(&name.as_str());
    acting || on_files || names.last().is_some_and(method)
}

/// Whether an import or an alias gives another name to what [`acts_outside`] tells by its name.
pub(super) fn renames_acting(name: &str, path: &str) -> bool {
    let path = path.trim_end_matches("::self");
    let last = path.rsplit("::").next().unwrap_or_default();
    let renamed = ACTING_MODULES.contains(&last) || ACTING.contains(&last);
    last != name && name != "*" && renamed
}

/// Names of the program's own in a file.
#[derive(Debug, Default)]
pub(super) struct Own {
    declared: BTreeSet<String>,
    modules: BTreeSet<String>,
    functions: BTreeSet<String>,
    /// Names that imports give, and what the paths of each begin with.
    imports: BTreeMap<String, BTreeSet<String>>,
}

impl Own {
    pub(super) fn of(parsed: &syn::File) -> Self {
        let mut own = Self::default();
        own.visit_file(parsed);
        own
    }

    /// Whether a file declares a function or method of this name.
    pub(super) fn declares(&self, function: &str) -> bool {
        self.functions.contains(function)
    }

    /// Whether a path begins in the program itself.
    pub(super) fn has(&self, names: &[String]) -> bool {
        let Some((first, rest)) = names.split_first() else {
            return false;
        };
        let root = |first: &str| {
            ["crate", "self", "super"].contains(&first) || self.modules.contains(first)
        };
        if !rest.is_empty() && root(first) {
            return true;
        }
        let (own, all) = (self.imports.get(first), self.imports.get("*"));
        let mut begins = own.into_iter().chain(all).flatten();
        let foreign = begins.any(|begins| !root(begins));
        !foreign && (own.is_some() || self.declared.contains(first))
    }
}

impl<'ast> Visit<'ast> for Own {
    fn visit_item(&mut self, node: &'ast Item) {
        let name = match node {
            Item::Struct(node) => Some(&node.ident),
            Item::Enum(node) => Some(&node.ident),
            Item::Union(node) => Some(&node.ident),
            Item::Trait(node) => Some(&node.ident),
            Item::Fn(node) => Some(&node.sig.ident),
            Item::Mod(node) => {
                self.modules.insert(plain(&node.ident));
                None
            }
            Item::Use(node) => {
                for (name, path) in names::imported(&node.tree) {
                    let begins = path.split("::").next().unwrap_or_default();
                    let all = self.imports.entry(name).or_default();
                    all.insert(begins.to_owned());
                }
                None
            }
            _ => None,
        };
        self.declared.extend(name.map(plain));
        visit::visit_item(self, node);
    }
    fn visit_signature(&mut self, node: &'ast syn::Signature) {
        self.functions.insert(plain(&node.ident));
    }
}

impl Walker<'_> {
    /// A path that acts outside. `Self` is the type of the implementation around it.
    pub(super) fn acting_path(&mut self, node: &syn::Path) {
        let names = node.segments.iter().map(|s| plain(&s.ident));
        let mut names: Vec<String> = names.collect();
        if names.first().is_some_and(|first| first == "Self") {
            names.splice(0..1, self.own_type.iter().cloned());
        }
        if acts_outside(&names) && !self.own.has(&names) {
            self.silence(node.span().byte_range(), Silence::Effect);
        }
    }

    pub(super) fn acting_import(&mut self, node: &syn::ItemUse) {
        for (name, path) in names::imported(&node.tree) {
            let names: Vec<String> = path.split("::").map(str::to_owned).collect();
            let acts = acts_outside(&names) || renames_acting(&name, &path);
            let own = names.len() > 1 && self.own.has(&names);
            if acts && !own {
                self.silence(node.span().byte_range(), Silence::Effect);
            }
        }
    }

    pub(super) fn acting_method(&mut self, node: &syn::ExprMethodCall) {
        let name = plain(&node.method);
        if ACTING_METHODS.contains(&name.as_str()) && !self.own.declares(&name) {
            self.silence(node.method.span().byte_range(), Silence::Effect);
        }
    }
}
