package tmpl

import "slices"

// Common names the captures and attributes that can be told from a text of which it is not known whether the one
// or the other template gave it: those that stand at the beginning of both, written and ended in the same way.
func Common(a, b *Template) map[string]bool {
	told := map[string]bool{}
	for i := range min(len(a.ops), len(b.ops)) {
		x, y := &a.ops[i], &b.ops[i]
		if x.kind == srcLiteral && y.kind == srcLiteral && x.lit == y.lit {
			continue
		}
		last := i == len(a.ops)-1 && i == len(b.ops)-1
		if !x.same(y) || x.stop == "" && !last {
			break
		}
		if a.Covers[x.name] && b.Covers[x.name] {
			told[x.name] = true
		}
	}
	return told
}

// same says that two references read the same, write it the same way, and end at the same text.
func (o *op) same(p *op) bool {
	if o.kind != p.kind || o.kind == srcLiteral || o.kind == srcSalt || o.name != p.name || o.slot != p.slot || o.mode != p.mode || o.empty != p.empty {
		return false
	}
	ends := o.stop == p.stop
	if o.mode == SegEscape || o.mode == SegOrdered { // one byte, or the delimiter, ends them
		ends = (o.stop == "") == (p.stop == "") && (o.stop == "" || o.stop[0] == p.stop[0])
	}
	return ends && slices.EqualFunc(o.filters, p.filters, func(f, g filter) bool { return f.src == g.src })
}

// AsNumber says that the text will be read as a number, which forgets leading zeros and where one reference ends and
// the next begins: a value can be told from it only if it stands alone and is written in one way.
func (t *Template) AsNumber() {
	references := 0
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == srcLiteral {
			continue
		}
		references++
		canonical := o.number && len(o.filters) == 0
		if n := len(o.filters); n > 0 {
			canonical = slices.Contains([]string{"int", "pad", "revms", "rev64", "s_ms"}, o.filters[n-1].name)
		}
		if !canonical {
			delete(t.Covers, o.name)
		}
	}
	if references > 1 {
		t.Ambig = "a number made of several values may be the same for others: take it from one"
	}
}
