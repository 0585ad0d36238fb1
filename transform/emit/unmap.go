package emit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Unmap turns an item's main row back into the item, from its key attributes (the row's marker
// holds them) and its cells. It is exact where the program is Lossless, and elsewhere leaves out
// what cannot be read back. Numbers come back in canonical form, attributes sorted by name.
func Unmap(p *ir.Program, keys change.Image, cells []Cell) (change.Image, error) {
	x := p.NewEval()
	r, err := ruleByKey(p, x, keys)
	if err != nil {
		return nil, err
	}
	u := unmapper{x: x, cells: cells, types: map[string]change.Kind{}, values: map[string]change.Value{}}
	pl := r.Plans[0]
	if e, _ := usableSidecar(pl); e != nil {
		if err := u.readSidecar(e); err != nil {
			return nil, err
		}
	}
	readable, _ := readableEmitters(pl)
	for _, e := range readable {
		if err := u.readEmitter(e); err != nil {
			return nil, err
		}
	}
	return u.assemble(p, keys), nil
}

// WhyItemLost returns why an item with these keys cannot be turned back from its main row, with the
// rule that takes it; "" when it can.
func WhyItemLost(p *ir.Program, keys change.Image) string {
	r, err := ruleByKey(p, p.NewEval(), keys)
	if err != nil {
		return err.Error()
	}
	if why := WhyLost(p, slices.Index(p.Rules, r)); why != "" {
		return "rule " + r.Name + ": " + why
	}
	return ""
}

// ruleByKey returns the rule of an item by its key, and leaves the rule's captures in the scope. It
// refuses the item at a rule that tests more than the key, because that rule may have written the
// row.
func ruleByKey(p *ir.Program, x *ir.Eval, keys change.Image) (*ir.Rule, error) {
	x.Scope.Image = keys
	for _, r := range p.Rules {
		if !r.DecidedByKey() {
			return nil, tmpl.Refuse("no_rule", "rule %s tests more than key attributes: the row does not determine which rule "+
				"wrote it", r.Name)
		}
		x.Scope.Caps = x.Captures
		if ok, err := ir.Matches(r.Conditions, nil, keys, x.Scope.Caps); err != nil || !ok {
			continue
		}
		if len(r.Plans) == 0 {
			return nil, tmpl.Refuse("no_rule", "rule %s drops the item", r.Name)
		}
		return r, nil
	}
	return nil, tmpl.Refuse("no_rule", "no rule of the mapping writes this item")
}

// unmapper turns one row back into its item.
type unmapper struct {
	x      *ir.Eval
	cells  []Cell
	types  map[string]change.Kind  // from the sidecar, by attribute
	values map[string]change.Value // read so far, by attribute
}

// readSidecar reads the attributes' types, if the row has them.
func (u *unmapper) readSidecar(e *ir.Emitter) error {
	q, err := e.ColumnName(u.x)
	if err != nil {
		return ignoreRefusal(err) // a column that is refused was never written
	}
	for _, c := range u.cells {
		if c.Family == e.Family.Name && string(c.Qualifier) == string(q) {
			u.types, err = encode.ParseTypes(c.Value)
			return err
		}
	}
	return nil
}

// readEmitter reads what one emitter has written.
func (u *unmapper) readEmitter(e *ir.Emitter) error {
	switch s := e.Source.(type) {
	case *ir.Document:
		return u.readColumn(e, "", u.readDocument)
	case *ir.Attr:
		return u.readColumn(e, s.Name, u.readValue)
	case *ir.Attrs:
		if len(s.Selected.Names) == 1 {
			return u.readColumn(e, s.Selected.Names[0], u.readValue)
		}
		return u.readColumns(e, func(e *ir.Emitter, part string, c *Cell) error {
			name := s.Selected.Original(part)
			if !s.Selected.Has(name) || s.Selected.Written(name) != part { // the column is another entry's
				return nil
			}
			return u.readValue(e, name, c)
		})
	}
	return u.readCollection(e)
}

// readColumn calls f for the cell of an emitter that has one column.
func (u *unmapper) readColumn(e *ir.Emitter, name string, f func(*ir.Emitter, string, *Cell) error) error {
	shown := e.Source.Attributes().Written(name)
	u.x.Scope.Vars[tmpl.VarAttr], u.x.Scope.Vars[tmpl.VarPath] = shown, shown
	q, err := e.ColumnName(u.x)
	if err != nil {
		return ignoreRefusal(err)
	}
	for i := range u.cells {
		if c := &u.cells[i]; e.InFamily(c.Family) && string(c.Qualifier) == string(q) {
			return u.atCell(f(e, name, c), c)
		}
	}
	return nil
}

// readColumns calls f for every cell of an emitter that has many columns, with the part of the
// column's name that comes from the variable.
func (u *unmapper) readColumns(e *ir.Emitter, f func(e *ir.Emitter, part string, c *Cell) error) error {
	h, _ := e.Qualifier.VarPlace()
	before, after, err := e.Qualifier.TextsAround(h, &u.x.Scope)
	if err != nil {
		return ignoreRefusal(err)
	}
	for i := range u.cells {
		c := &u.cells[i]
		part, ok := cutBetween(string(c.Qualifier), before, after)
		if _, list := e.Source.(*ir.List); list {
			part, ok = canonicalIndex(part)
		}
		if !ok || !e.InFamily(c.Family) || !writesColumn(e, u.x, h.Var, part, c.Qualifier) {
			continue
		}
		if err := u.atCell(f(e, part, c), c); err != nil {
			return err
		}
	}
	return nil
}

// writesColumn reports whether the emitter gives this column when its variable v is part. Another
// cell of the family may have the texts around the variable without being one that the template
// gives.
func writesColumn(e *ir.Emitter, x *ir.Eval, v int, part string, column []byte) bool {
	x.Scope.Vars[v] = part
	q, err := e.ColumnName(x)
	return err == nil && string(q) == string(column)
}

// canonicalIndex returns a list index without its leading zeros; false if the text is no index.
func canonicalIndex(part string) (string, bool) {
	n, err := strconv.ParseUint(part, 10, 32)
	return strconv.FormatUint(n, 10), err == nil
}

// cutBetween returns the text of s between before and after; false if s does not begin and end with
// them.
func cutBetween(s, before, after string) (string, bool) {
	if len(s) < len(before)+len(after) || !strings.HasPrefix(s, before) || !strings.HasSuffix(s, after) {
		return "", false
	}
	return s[len(before) : len(s)-len(after)], true
}

// atCell adds the cell's column to an error.
func (u *unmapper) atCell(err error, c *Cell) error {
	if err == nil {
		return nil
	}
	return ir.WrapRefusal("unmap", err, "column %s:%s", c.Family, c.Qualifier)
}

// readDocument reads all attributes of a document.
func (u *unmapper) readDocument(e *ir.Emitter, _ string, c *Cell) error {
	var d change.Decoder
	img, err := d.Image(c.Value)
	for _, a := range img {
		u.values[e.Source.Attributes().Original(a.Name)] = a.Value
	}
	return err
}

// readValue reads one attribute, with its type from the sidecar where its encoding does not show
// it.
func (u *unmapper) readValue(e *ir.Emitter, name string, c *Cell) (err error) {
	kind, ok := u.types[name]
	if !ok {
		kind = change.KindString
	}
	if c.Family != e.Family.Name {
		u.values[name], err = encode.ParseNatural(kind, c.Value)
	} else {
		u.values[name], err = decode(e, kind, c.Value)
	}
	return err
}

// readCollection assembles a set, a map or a list from the cells of its members.
func (u *unmapper) readCollection(e *ir.Emitter) error {
	name := e.Entry.Name.S
	v := change.Value{Kind: u.types[name]}
	elements := map[int]change.Value{}
	err := u.readColumns(e, func(e *ir.Emitter, part string, c *Cell) error {
		if _, set := e.Source.(*ir.Set); set {
			member, err := encode.ParseNatural(v.Kind-change.KindStringSet+change.KindString, []byte(part))
			if err == nil {
				v.L = append(v.L, member)
			}
			return err
		}
		member, err := encode.ParseDynamoJSON(c.Value)
		if err != nil {
			return err
		}
		if _, list := e.Source.(*ir.List); !list {
			v.M = append(v.M, change.Attr{Name: part, Value: member})
			return nil
		}
		i, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("parse position: %w", err)
		}
		elements[i] = member
		return nil
	})
	for i := range len(elements) {
		v.L = append(v.L, elements[i])
	}
	if v.Kind >= change.KindStringSet {
		u.values[name] = v
	}
	return err
}

// decode reads a value in the emitter's encoding; kind is used where the encoding does not show the
// type.
func decode(e *ir.Emitter, kind change.Kind, b []byte) (change.Value, error) {
	switch e.Entry.As.S {
	case "int64":
		return encode.ParseInt64(b)
	case "dynamo_json":
		return encode.ParseDynamoJSON(b)
	case "decimal":
		kind = change.KindNumber
	case "bool1":
		return change.Value{Kind: change.KindBool, Bool: len(b) == 1 && b[0] == 1}, nil
	}
	return encode.ParseNatural(kind, b)
}

// assemble joins the keys, the values read, and NULLs, which have no cell but are listed in the
// sidecar.
func (u *unmapper) assemble(p *ir.Program, keys change.Image) change.Image {
	for name, kind := range u.types {
		if _, ok := u.values[name]; !ok && kind == change.KindNull {
			u.values[name] = change.Value{Kind: kind}
		}
	}
	for _, k := range keys {
		if p.KeyType(k.Name) != 0 {
			u.values[k.Name] = k.Value
		}
	}
	out := make(change.Image, 0, len(u.values))
	for name, v := range u.values {
		out = append(out, change.Attr{Name: name, Value: v})
	}
	slices.SortFunc(out, func(a, b change.Attr) int { return strings.Compare(a.Name, b.Name) })
	return out
}
