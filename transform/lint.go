package transform

import (
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// checkEmitter refuses combinations that cannot work.
func (c *compiler) checkEmitter(e *emitter) {
	need, several := map[string]int{"attrs": tmpl.VarAttr, "map": tmpl.VarKey, "set": tmpl.VarMember, "list": tmpl.VarI}[e.kind]
	uses := e.qualifier.Vars
	if e.kind == "attrs" && e.flatten {
		need = tmpl.VarPath
	}
	several = several && !e.versions && (e.kind != "attrs" || len(e.names) != 1)
	if several && !uses[need] && (e.kind != "attrs" || !uses[tmpl.VarPath]) {
		c.ps.Errorf(e.src.To, "to", "write \""+e.family.Name+":{"+tmpl.VarNames[need]+"}\"", "`%s` gives several cells, but the column is always %q", e.describe(), e.src.To.S)
	}
	if e.siblings && e.ts == nil {
		c.ps.Errorf(e.src.CellID, "cell_id", "add `ts:`", "`cell_id: ts` needs a cell time from the key or the item")
	}
	if e.siblings && (e.missing == "version" || e.missing == "never") {
		c.ps.Errorf(e.src.TSMissing, "ts_missing", "refuse or skip", "with `cell_id: ts` a cell without its time could not be found again")
	}
	if e.aggregate() {
		c.checkAggregate(e)
	}
	if e.kind == "doc" && e.format == "raw" && (len(e.names) > 0 || len(e.except) > 0 || len(e.rename) > 0) {
		c.ps.Errorf(e.src.At, "format", "use format: dynamo_json", "`format: raw` is the image as it came: it cannot leave out or rename attributes")
	}
	if e.flatten && e.escapes && strings.ContainsAny(e.joiner, tmpl.Escaping) {
		c.ps.Errorf(e.src.Join, "value", "use . or / or #", "join: %q cannot be told from the escapes inside of names", e.joiner)
	}
	c.checkTime(e)
}

// checkAggregate holds an emitter to what the server can merge: 64-bit integers, in cells of one column and one time.
func (c *compiler) checkAggregate(e *emitter) {
	distinct := e.family.Aggregate == "hll"
	switch {
	case distinct && e.kind != "attr" && e.kind != "attrs":
		c.ps.Errorf(e.src.At, "aggregate", "use `attr:` or `attrs:`", "family %s counts distinct values of attributes; `%s` gives none", e.family.Name, e.describe())
	case !distinct && e.src.As.S != "int64":
		c.ps.Errorf(e.src.To, "aggregate", "write `as: int64`", "family %s is an aggregate: it holds 64-bit integers only", e.family.Name)
	}
	if e.ts == nil {
		c.ps.Errorf(e.src.To, "aggregate", "add `ts: \"0\"`, or a time that is the same for all that shall be merged", "cells of family %s are merged where their time is the same: without `ts` every change would begin a new one", e.family.Name)
	}
}

// checkTime refuses cell times that garbage collection would misread.
func (c *compiler) checkTime(e *emitter) {
	f := e.family
	switch {
	case e.versions && f.MaxVersions != 0:
		c.ps.Errorf(e.src.To, "gc", "max_versions: all", "the list's elements are versions of one column, but family %s keeps %d", f.Name, f.MaxVersions)
	case e.versions && f.MaxAge > 0:
		c.ps.Errorf(e.src.To, "gc", "remove max_age from the family", "the elements' cell times are their positions: max_age would remove them all")
	case f.MaxAge > 0 && e.ts != nil && !e.wallTime():
		c.ps.Errorf(e.src.TS, "gc", "use a family without max_age, or a cell time from iso_ms or s_ms", "cell time %q is not a time of day: max_age of family %s would remove its cells at once", e.ts.Source, f.Name)
	case f.expires && e.ts == nil:
		c.ps.Errorf(e.src.To, "expires_by_timestamp", "add `ts: \"{"+c.ttl()+"|s_ms}\"`, or use another family", "family %s expires by timestamp, but the cell has no expiry: it would vanish at once", f.Name)
	}
}

func (c *compiler) ttl() string {
	if c.p.table.TTLAttr != "" {
		return c.p.table.TTLAttr
	}
	return "expiresAt"
}

// wallTime guesses whether a cell time is a time of day: no constant, no number turned around.
func (e *emitter) wallTime() bool {
	for _, f := range e.ts.Filters {
		if f == "iso_ms" || f == "s_ms" {
			return true
		}
	}
	return len(e.ts.Uses) > 0 && len(e.ts.Filters) == 0
}

// lint looks at the finished program for what will hurt later.
func (c *compiler) lint() {
	for _, f := range c.p.families {
		if f.expires && f.MaxAge != time.Second {
			c.ps.Errorf(f.at, "expires_by_timestamp", "write `max_age: 1s`", "family %s expires by timestamp, so its cells must be collectable as soon as their time has passed", f.Name)
		}
		if len(f.Name) > 8 {
			c.ps.Warnf(f.at, "family_name", "up to 8 characters: it travels with every request", "family name %q is long", f.Name)
		}
	}
	for _, r := range c.p.rules {
		c.lintRule(r)
		for j, pl := range r.plans {
			c.lintRow(pl, j == 0)
			for _, e := range pl.emitters {
				c.personal(e.src.To, e.qualifier, e)
			}
			c.personal(*pl.src, pl.row, nil)
		}
	}
	c.lintGrammar()
	c.lintReads()
	c.lintViews()
}

// lintGrammar warns of rows with different numbers of parts: SQL over structured row keys wants one grammar.
func (c *compiler) lintGrammar() {
	first, parts := "", 0
	for _, r := range c.p.rules {
		for _, pl := range r.plans {
			if r.dead {
				continue
			}
			n := pl.row.Parts(c.delimiter())
			switch {
			case first == "":
				first, parts = pl.name, n
			case n != parts:
				c.ps.Warnf(*pl.src, "mixed_grammar", "fine for readers by key and prefix; a row-key schema for SQL needs one form of key per table", "rows of %s have %d parts, rows of %s have %d", pl.name, n, first, parts)
				return
			}
		}
	}
}

func (c *compiler) lintRule(r *rule) {
	for _, s := range r.src.ShareWith {
		if !slices.ContainsFunc(c.p.rules, func(o *rule) bool { return o.name == s.S }) {
			c.ps.Errorf(s, "may_share_cells_with", "the name of another rule of this file", "there is no rule %q", s.S)
		}
	}
	if r.onRemove == "row" {
		c.ps.Warnf(r.src.OnRemove, "cascade", "on_remove: own removes the item's cells only; the row vanishes with its last cell",
			"removing one of these items deletes the whole row; a child that changes later brings a part of it back")
	}
	if r.onTTL == "keep" && r.needOld {
		c.ps.Warnf(r.src.OnTTLExpiry, "ttl", "on_ttl_expiry: delete, or a row of class R", "an expired item that is put again leaves its old cells behind: they are not known from its key")
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
func (c *compiler) lintDocument(r *rule, e *emitter) {
	if e.kind != "doc" || e.names != nil {
		return
	}
	for _, x := range e.src.Except {
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
			if e.attr == name || slices.Contains(e.names, name) || slices.Contains(e.qualifier.Attrs, name) || (e.ts != nil && slices.Contains(e.ts.Attrs, name)) {
				return true
			}
		}
	}
	return false
}

// lintReach refuses a rule that an earlier one leaves nothing to.
func (c *compiler) lintReach(i int, r *rule) {
	for _, earlier := range c.p.rules[:i] {
		if earlier.when == nil && covers(earlier.src.Match, r.src.Match) {
			r.dead = true
			c.ps.Errorf(r.src.At, "unreachable", "move it before "+earlier.name+", or remove it", "rule %s can never match: %s comes first and takes all its items", r.name, earlier.name)
			return
		}
	}
}

// covers says that whatever meets the conditions b meets the conditions a.
func covers(a, b []lang.Condition) bool {
	for i := range a {
		x := &a[i]
		j := slices.IndexFunc(b, func(y lang.Condition) bool { return y.At.S == x.At.S })
		whole := x.Pattern.Set() && isWhole(x.Pattern.S) && !x.Equals.Set() && x.In == nil && !x.Type.Set() && x.Exists == nil
		if whole && (j >= 0 && (b[j].Pattern.Set() || b[j].Equals.Set())) {
			continue
		}
		if j < 0 || !sameCondition(x, &b[j]) {
			return false
		}
	}
	return true
}

func isWhole(pattern string) bool {
	p, err := lang.ParsePattern(pattern)
	return err == nil && len(p) == 1 && p[0].Kind == lang.Any
}

func sameCondition(a, b *lang.Condition) bool {
	exists := (a.Exists == nil) == (b.Exists == nil) && (a.Exists == nil || *a.Exists == *b.Exists)
	return exists && shapeOf(a.Pattern.S) == shapeOf(b.Pattern.S) && a.Equals.S == b.Equals.S && a.Type.S == b.Type.S && len(a.In) == 0 && len(b.In) == 0
}

// shapeOf is a pattern without the names of its captures.
func shapeOf(pattern string) string {
	p, _ := lang.ParsePattern(pattern)
	var sb strings.Builder
	for _, part := range p {
		if part.Kind == lang.Literal {
			sb.WriteString(part.Text)
		} else {
			sb.WriteString("{" + string(rune('0'+part.Kind)) + "}")
		}
	}
	return sb.String()
}

// personal refuses names of rows and columns that show personal data: they reach logs and monitoring.
func (c *compiler) personal(at lang.Text, t *tmpl.Template, e *emitter) {
	shown := func(attr, how string) {
		if c.pii[attr] {
			c.ps.Errorf(at, "pii", "use a keyed hash: {"+how+"|hmac(secret,32)}", "%q shows attribute %q, which is listed under pii", at.S, attr)
		}
	}
	t.References(func(name string, capture tmpl.Capture, _ []string) {
		if !t.Exposed[name] {
			return
		}
		attr := name
		if capture.Attr != "" {
			attr = capture.Attr
		}
		if e != nil && capture.Name == "" && (name == "member" || name == "key") {
			attr = e.attr
		}
		shown(attr, name)
	})
}

// lintRow warns of row keys that make a table slow or hard to read.
func (c *compiler) lintRow(pl *plan, main bool) {
	at := *pl.src
	if name, capture, filters, ok := pl.row.First(); ok && main {
		attr := capture.Attr
		if attr == "" {
			attr = name
		}
		switch {
		case looksLikeTime(name) || looksLikeTime(attr) || slices.Contains(filters, "iso_ms") || slices.Contains(filters, "s_ms"):
			c.ps.Warnf(at, "hotspot", "put an id with many values first: \"{id}#{"+name+"}\"", "rows begin with a time: all new rows go to one place")
		case (capture.Type == 'N' && capture.All || capture.Kind == lang.Digits) && !slices.Contains(filters, "revstr"):
			c.ps.Warnf(at, "hotspot", "{"+name+"|revstr} spreads sequential numbers; ignore this if they are not sequential", "rows begin with a number: if it grows with time, all new rows go to one place")
		}
	}
	pl.row.References(func(name string, capture tmpl.Capture, filters []string) {
		number := capture.Kind == lang.Digits || (capture.All && capture.Type == 'N')
		ordered := slices.ContainsFunc(filters, func(f string) bool { return slices.Contains([]string{"pad", "ordnum", "revms", "rev64", "revstr"}, f) })
		if number && !ordered {
			c.ps.Warnf(at, "unpadded", "{"+name+"|pad(10)} for non-negative integers, {"+name+"|ordnum} for any number", "{%s} is a number: as text 9 sorts after 10", name)
		}
		if capture.All && capture.Type == 'B' && len(filters) == 0 {
			c.ps.Warnf(at, "binary_key", "{"+name+"|hex}", "{%s} puts raw bytes into the row key, which tools cannot show", name)
		}
		for _, f := range filters {
			if (f == "hash" || f == "hmac") && !c.pii[capture.Attr] {
				c.ps.Warnf(at, "hashed_key", "fine for personal data: list the attribute under pii", "{%s|%s} hides the value: rows cannot be read in its order", name, f)
			}
		}
	})
}

func looksLikeTime(name string) bool {
	n := strings.ToLower(name)
	for _, s := range []string{"timestamp", "datetime", "created", "updated", "time", "date"} {
		if strings.HasPrefix(n, s) || strings.HasSuffix(n, s) {
			return true
		}
	}
	return n == "ts" || strings.HasSuffix(n, "_at")
}
