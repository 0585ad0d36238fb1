package transform

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// checkEmitter refuses combinations that cannot work.
func (c *compiler) checkEmitter(e *Emitter) {
	_, attrs := e.Source.(*Attrs)
	need, several := e.Source.Variable()
	uses := e.Qualifier.Vars
	if attrs && e.Values.Flatten != nil {
		need = tmpl.VarPath
	}
	if several && !uses[need] && (!attrs || !uses[tmpl.VarPath]) {
		c.ps.Errorf(e.Entry.To, "to", c.severalColumns(e, tmpl.VarNames[need]), "`%s` gives several cells, but the column is always %q", e.Describe(), e.Entry.To.S)
	}
	if e.Time.Siblings && e.Time.Template == nil {
		c.ps.Errorf(e.Entry.CellID, "cell_id", "add `ts:`", "`cell_id: ts` needs a cell time from the key or the item")
	}
	if e.Time.Siblings && (e.Time.Missing == "version" || e.Time.Missing == "never") {
		c.ps.Errorf(e.Entry.TSMissing, "ts_missing", "refuse or skip", "with `cell_id: ts` a cell without its time could not be found again")
	}
	if e.Aggregate() {
		c.checkAggregate(e)
	}
	if d, ok := e.Source.(*Document); ok && d.Format == "raw" && (len(d.set.Names) > 0 || len(d.set.Except) > 0 || len(d.set.Rename) > 0) {
		c.ps.Errorf(e.Entry.At, "format", "use format: dynamo_json", "`format: raw` is the image as it came: it cannot leave out or rename attributes")
	}
	if f := e.Values.Flatten; f != nil && f.Escapes && strings.ContainsAny(f.Joiner, tmpl.Escaping) {
		c.ps.Errorf(e.Entry.Join, "value", "use . or / or #", "join: %q cannot be told from the escapes inside of names", f.Joiner)
	}
	c.checkTime(e)
}

// checkAggregate holds an emitter to what the server can merge: 64-bit integers, in cells of one column and one time.
func (c *compiler) checkAggregate(e *Emitter) {
	distinct := e.Family.Aggregate == "hll"
	merges := false
	switch e.Source.(type) {
	case *Attr, *Attrs:
		merges = true
	case *Map, *List, *Types:
		merges = !distinct
	}
	switch {
	case !merges:
		c.ps.Errorf(e.Entry.At, "aggregate", "use `attr:` or `attrs:`", "family %s merges values of attributes; `%s` gives none", e.Family.Name, e.Describe())
	case !distinct && e.Entry.As.S != "int64":
		c.ps.Errorf(e.Entry.To, "aggregate", "write `as: int64`", "family %s is an aggregate: it holds 64-bit integers only", e.Family.Name)
	}
	if e.Time.Template == nil {
		c.ps.Errorf(e.Entry.To, "aggregate", "add `ts: \"0\"`, or a time that is the same for all that shall be merged", "cells of family %s are merged where their time is the same: without `ts` every change would begin a new one", e.Family.Name)
	}
}

// checkTime refuses cell times that garbage collection would misread.
func (c *compiler) checkTime(e *Emitter) {
	f := e.Family
	switch {
	case e.Versions() && f.MaxVersions != 0:
		c.ps.Errorf(e.Entry.To, "gc", "max_versions: all", "the list's elements are versions of one column, but family %s keeps %d", f.Name, f.MaxVersions)
	case e.Versions() && f.MaxAge > 0:
		c.ps.Errorf(e.Entry.To, "gc", "remove max_age from the family", "the elements' cell times are their positions: max_age would remove them all")
	case e.Time.Template != nil && len(e.Time.Template.Uses) == 0 && !isTime(e.Entry.TS.S):
		c.ps.Errorf(e.Entry.TS, "ts", timeHint(e.Entry.TS.S), "%q is always the same text, and no time in ms: every item would be refused", e.Entry.TS.S)
	case f.MaxAge > 0 && e.Time.Template != nil && !e.wallTime():
		c.ps.Errorf(e.Entry.TS, "gc", "use a family without max_age, or a cell time from iso_ms or s_ms", "cell time %q is not a time of day: max_age of family %s would remove its cells at once", e.Time.Template.Source, f.Name)
	case f.expires && e.Time.Missing == "version":
		c.ps.Errorf(e.Entry.TSMissing, "ts_missing", "never, skip or refuse", "family %s expires by timestamp: with the change's own time a cell without expiry would vanish at once", f.Name)
	case f.expires && e.Time.Template == nil:
		c.ps.Errorf(e.Entry.To, "expires_by_timestamp", "add `ts: \"{"+c.ttl()+"|s_ms}\"`, or use another family", "family %s expires by timestamp, but the cell has no expiry: it would vanish at once", f.Name)
	}
}

func (c *compiler) ttl() string {
	if c.p.table.TTLAttr != "" {
		return c.p.table.TTLAttr
	}
	return "expiresAt"
}

// wallTime guesses whether a cell time is a time of day: no constant, no number turned around.
func (e *Emitter) wallTime() bool {
	for _, f := range e.Time.Template.Filters {
		if f == "iso_ms" || f == "s_ms" {
			return true
		}
	}
	return len(e.Time.Template.Uses) > 0 && len(e.Time.Template.Filters) == 0
}

func isTime(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n >= 0 && n <= maxTime
}

// timeHint says what a fixed text in the place of a cell time was meant to be.
func timeHint(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (s[0] < '0' || s[0] > '9') {
		return "the time of attribute " + s + ": ts: \"{" + s + "|iso_ms}\" from ISO 8601 text, \"{" + s + "|s_ms}\" from unix seconds, \"{" + s + "}\" from ms"
	}
	return "a number of ms such as ts: \"0\", or a template: ts: \"{created|iso_ms}\""
}

// lint looks at the finished program for what will hurt later.
func (c *compiler) lint() {
	for _, f := range c.p.families {
		if f.expires && f.MaxAge != time.Second {
			c.ps.Errorf(f.at, "expires_by_timestamp", "write `max_age: 1s`", "family %s expires by timestamp, so its cells must be collectable as soon as their time has passed", f.Name)
		}
		if len(f.Name) > 8 {
			c.ps.Warnf(f.at, "family_name", "up to 8 characters: it travels with every request; if readers know it by this name: acknowledged: [family_name]", "family name %q is long", f.Name)
		}
	}
	for _, r := range c.p.rules {
		c.lintRule(r)
		c.lintNames(r)
		for j, pl := range r.plans {
			c.lintRow(pl, j == 0)
			c.lintPersonal(pl)
			c.lintTwice(pl)
		}
	}
	c.lintReads()
	c.lintViews()
}

func (c *compiler) lintRule(r *rule) {
	for _, s := range r.src.ShareWith {
		if !slices.ContainsFunc(c.p.rules, func(o *rule) bool { return o.name == s.S }) {
			c.ps.Errorf(s, "may_share_cells_with", "the name of another rule of this file", "there is no rule %q", s.S)
		}
	}
	if !r.drop && r.src.Row.Set() && len(r.src.Cells) == 0 {
		c.ps.Warnf(r.src.At, "cells", "add `cells`", "the rule writes no cells: only the item's presence is kept")
	}
	if r.onRemove == "row" {
		c.ps.Warnf(r.src.OnRemove, "cascade", "on_remove: own removes the item's cells only, the row vanishes with its last cell; if children are removed with the item: acknowledged: [cascade]",
			"removing one of these items deletes the whole row; a child that changes later brings a part of it back")
	}
	c.histories(r)
	if c.p.strands(r) {
		at := r.src.OnTTLExpiry
		if !at.Set() { // the table's word
			at = r.src.At
		}
		c.ps.Warnf(at, "ttl", "on_ttl_expiry: delete; or a rule and rows that the key alone decides", "an expired item that is put again leaves its old cells behind: its key does not tell which they were")
	}
	if r.archive != nil && slices.ContainsFunc(c.keyNames(), func(k string) bool { return c.pii[k] }) {
		c.ps.Errorf(r.src.OnTTLExpiry, "pii", "on_ttl_expiry: archive", "the archive's column is named by the item's key, which holds personal data")
	}
	for _, pl := range r.plans {
		for _, e := range pl.emitters {
			c.lintDocument(r, e)
		}
	}
}

// lintDocument refuses documents that leave out attributes which nothing else writes.
func (c *compiler) lintDocument(r *rule, e *Emitter) {
	if _, ok := e.Source.(*Document); !ok || !e.Source.Attributes().All() {
		return
	}
	for _, x := range e.Entry.Except {
		if c.p.keyType(x.S) != 0 || r.ignores(x.S) || r.mentions(x.S) {
			continue
		}
		c.ps.Errorf(x, "lost", "write it elsewhere, or say that it is left out on purpose: ignore: ["+x.S+"]", "the document leaves out %q, and nothing else writes it", x.S)
	}
}

func (r *rule) ignores(name string) bool {
	return slices.ContainsFunc(r.src.Ignore, func(t lang.Text) bool { return t.S == name || t.S == "*" })
}

// mentions says whether a rule uses an attribute outside of documents and wildcards.
func (r *rule) mentions(name string) bool {
	if slices.ContainsFunc(r.conds, func(c condition) bool { return c.attr == name && (c.equals != nil || c.pattern != nil) }) {
		return true
	}
	for _, pl := range r.plans {
		if slices.Contains(pl.row.Attrs, name) {
			return true
		}
		for _, e := range pl.emitters {
			if slices.Contains(e.Source.Attributes().Names, name) || slices.Contains(e.Qualifier.Attrs, name) || (e.Time.Template != nil && slices.Contains(e.Time.Template.Attrs, name)) {
				return true
			}
		}
	}
	return false
}
