package compile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// checkColumns refuses emitters if their cells of one item would hide each other, or would be in a
// family that cannot hold them.
func (c *compiler) checkColumns(e *ir.Emitter) {
	if len(e.Source.Listed()) == 1 && e.Values.Flatten != nil && !e.Qualifier.Vars[tmpl.VarPath] {
		c.Problems.Errorf(e.Entry.To, "to", "write \""+e.Family.Name+":{path}\"",
			"`flatten` gives a cell for every leaf of the map, but the column is always %q", e.Entry.To.S)
	}
	for _, o := range e.Columns() {
		if !o.Main {
			c.checkPlainFamily(o.Family, o.At)
		}
	}
	if e.Time.Siblings && e.Family.MaxVersions == 1 {
		c.Problems.Errorf(e.Entry.To, "gc", "max_versions: a number of cells to keep, or all",
			"`cell_id: ts` puts cells of several items into one column, but family %s keeps one of them", e.Family.Name)
	}
	if e.Time.Siblings && e.Family.Removed == "empty" {
		c.Problems.Errorf(e.Entry.CellID, "cell_id", "removed: delete or keep",
			"family %s ends removed cells in an empty version, but with `cell_id: ts` the older versions are other items",
			e.Family.Name)
	}
	attrs := e.Source.Attributes()
	for _, name := range attrs.Names {
		if attrs.Except[name] {
			c.Problems.Errorf(e.Entry.At, "option", "leave it out of the list", "`except` leaves out %q, which `attrs` names",
				name)
		}
	}
	c.checkRename(e)
}

// checkRename refuses a new name that another attribute has.
func (c *compiler) checkRename(e *ir.Emitter) {
	attrs := e.Source.Attributes()
	given := map[string]string{}
	for _, p := range e.Entry.Rename {
		if other, dup := given[p.Value.S]; dup {
			c.Problems.Errorf(p.Value, "collision", "give each attribute a name of its own", "%q and %q are both renamed to %q",
				other, p.Name, p.Value.S)
		}
		given[p.Value.S] = p.Name
		_, moved := attrs.Rename[p.Value.S]
		if slices.Contains(attrs.Names, p.Value.S) && !moved {
			c.Problems.Errorf(p.Value, "collision", "give each attribute a name of its own",
				"%q is renamed to %q, which is written too", p.Name, p.Value.S)
		}
	}
}

// checkPlainFamily refuses a family in which cells are merged or expire, because it cannot hold
// ordinary cells.
func (c *compiler) checkPlainFamily(f *ir.FamilyRule, at problem.Text) {
	switch {
	case f.Aggregate != "":
		c.Problems.Errorf(at, "aggregate", "name a family of plain cells",
			"family %s is an aggregate: it holds merged numbers only", f.Name)
	case f.Expires:
		c.Problems.Errorf(at, "expires_by_timestamp", "name another family",
			"family %s expires by timestamp: what has no expiry would vanish at once", f.Name)
	}
}

// checkEmitter refuses combinations of options that cannot work.
func (c *compiler) checkEmitter(e *ir.Emitter) {
	_, attrs := e.Source.(*ir.Attrs)
	need, several := e.Source.Variable()
	uses := e.Qualifier.Vars
	if attrs && e.Values.Flatten != nil {
		need = tmpl.VarPath
	}
	if several && !uses[need] && (!attrs || !uses[tmpl.VarPath]) {
		c.Problems.Errorf(e.Entry.To, "to", c.severalColumnsHint(e, tmpl.VarNames[need]),
			"`%s` gives several cells, but the column is always %q", e.Describe(), e.Entry.To.S)
	}
	if e.Time.Siblings && e.Time.Template == nil {
		c.Problems.Errorf(e.Entry.CellID, "cell_id", "add `ts:`", "`cell_id: ts` needs a cell time from the key or the item")
	}
	if e.Time.Siblings && (e.Time.Missing == "version" || e.Time.Missing == "never") {
		c.Problems.Errorf(e.Entry.TSMissing, "ts_missing", "refuse or skip",
			"with `cell_id: ts` a cell without its time could not be found again")
	}
	if e.Aggregate() {
		c.checkAggregate(e)
	}
	if d, ok := e.Source.(*ir.Document); ok && d.Format == "raw" &&
		(len(d.Selected.Names) > 0 || len(d.Selected.Except) > 0 || len(d.Selected.Rename) > 0) {
		c.Problems.Errorf(e.Entry.At, "format", "use format: dynamo_json",
			"`format: raw` is the image as it came: it cannot leave out or rename attributes")
	}
	if f := e.Values.Flatten; f != nil && f.Escapes && strings.ContainsAny(f.Joiner, tmpl.Escaping) {
		c.Problems.Errorf(e.Entry.Join, "value", "use . or / or #",
			"join: %q cannot be distinguished from the escapes inside of names", f.Joiner)
	}
	c.checkTime(e)
}

// checkAggregate refuses an emitter with cells that the server cannot merge: max and min need
// 64-bit integers, hll needs attributes, and all need a cell time, because only cells of one column
// and one time are merged.
func (c *compiler) checkAggregate(e *ir.Emitter) {
	distinct := e.Family.Aggregate == "hll"
	merges := false
	switch e.Source.(type) {
	case *ir.Attr, *ir.Attrs:
		merges = true
	case *ir.Map, *ir.List, *ir.Types:
		merges = !distinct
	}
	switch {
	case !merges:
		c.Problems.Errorf(e.Entry.At, "aggregate", "use `attr:` or `attrs:`",
			"family %s merges values of attributes; `%s` gives none", e.Family.Name, e.Describe())
	case !distinct && e.Entry.As.S != "int64":
		c.Problems.Errorf(e.Entry.To, "aggregate", "write `as: int64`",
			"family %s is an aggregate: it holds 64-bit integers only", e.Family.Name)
	}
	if e.Time.Template == nil {
		c.Problems.Errorf(e.Entry.To, "aggregate", "add `ts: \"0\"`, or a time that is the same for all that shall be merged",
			"cells of family %s are merged where their time is the same: without `ts` every change would begin a new one",
			e.Family.Name)
	}
}

// checkTime refuses texts that are no time, and cell times for which garbage collection would
// remove wanted cells.
func (c *compiler) checkTime(e *ir.Emitter) {
	f := e.Family
	switch {
	case e.Versions() && f.MaxVersions != 0:
		c.Problems.Errorf(e.Entry.To, "gc", "max_versions: all",
			"the list's elements are versions of one column, but family %s keeps %d", f.Name, f.MaxVersions)
	case e.Versions() && f.MaxAge > 0:
		c.Problems.Errorf(e.Entry.To, "gc", "remove max_age from the family",
			"the elements' cell times are their positions: max_age would remove them all")
	case e.Time.Template != nil && len(e.Time.Template.Uses) == 0 && !isTime(e.Entry.TS.S):
		c.Problems.Errorf(e.Entry.TS, "ts", timeHint(e.Entry.TS.S),
			"%q is always the same text, and no time in ms: every item would be refused", e.Entry.TS.S)
	case f.MaxAge > 0 && e.Time.Template != nil && !wallTime(e):
		c.Problems.Errorf(e.Entry.TS, "gc", "use a family without max_age, or a cell time from iso_ms or s_ms",
			"cell time %q is not a time of day: max_age of family %s would remove its cells at once", e.Time.Template.Source,
			f.Name)
	case f.Expires && e.Time.Missing == "version":
		c.Problems.Errorf(e.Entry.TSMissing, "ts_missing", "never, skip or refuse",
			"family %s expires by timestamp: with the change's own time a cell without expiry would vanish at once", f.Name)
	case f.Expires && e.Time.Template == nil:
		c.Problems.Errorf(e.Entry.To, "expires_by_timestamp",
			"add `ts: \"{"+c.ttlAttribute()+"|s_ms}\"`, or use another family",
			"family %s expires by timestamp, but the cell has no expiry: it would vanish at once", f.Name)
	}
}

// ttlAttribute returns the table's TTL attribute for a hint, or an example of a name.
func (c *compiler) ttlAttribute() string {
	if c.Program.Table.TTLAttr != "" {
		return c.Program.Table.TTLAttr
	}
	return "expiresAt"
}

// wallTime guesses whether a cell time is a point in time, and not a constant or a reversed number.
func wallTime(e *ir.Emitter) bool {
	for _, f := range e.Time.Template.Filters {
		if f == "iso_ms" || f == "s_ms" {
			return true
		}
	}
	return len(e.Time.Template.Uses) > 0 && len(e.Time.Template.Filters) == 0
}

// isTime reports whether a text is a cell time in ms.
func isTime(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n >= 0 && n <= ir.MaxTime
}

// timeHint returns the cell time that the author of a fixed text probably meant.
func timeHint(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" &&
		(s[0] < '0' || s[0] > '9') {
		return "the time of attribute " + s + ": ts: \"{" + s + "|iso_ms}\" from ISO 8601 text, \"{" + s +
			"|s_ms}\" from unix seconds, \"{" + s + "}\" from ms"
	}
	return "a number of ms such as ts: \"0\", or a template: ts: \"{created|iso_ms}\""
}

// severalColumnsHint returns how to give each cell of an entry a column of its own.
func (c *compiler) severalColumnsHint(e *ir.Emitter, variable string) string {
	_, qualifier, _ := strings.Cut(e.Entry.To.S, ":")
	write := func(column string) string { return "write \"" + e.Family.Name + ":" + column + "\"" }
	var unknown []string
	for name := range e.Qualifier.Uses {
		_, key := c.KeyTypes()[name]
		if !key && !slices.Contains(tmpl.VarNames[:], name) && !e.Qualifier.Captured(name) {
			unknown = append(unknown, name)
		}
	}
	switch {
	case len(unknown) == 1:
		return write(strings.Replace(qualifier, "{"+unknown[0], "{"+variable, 1)) + ": {" + unknown[0] +
			"} is read as an attribute of the item"
	case qualifier == "":
		return write("{" + variable + "}")
	}
	return write(qualifier+"/{"+variable+"}") + ", or only {" + variable + "}"
}
