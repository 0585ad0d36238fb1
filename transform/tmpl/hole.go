package tmpl

// Hole is the one place where a template takes a variable of its source: what stands there can be cut out of a result.
type Hole struct {
	Var     int
	Plain   bool     // what stands there is the variable's text, neither filtered nor escaped
	Filters []string // names
	at      int
}

// Hole finds it; ok is false where a template has none, or several, and where a salt is made of the variable.
func (t *Template) Hole() (h Hole, ok bool) {
	for i := range t.ops {
		o := &t.ops[i]
		for j := range o.salt {
			if o.salt[j].kind == srcVar {
				return Hole{}, false
			}
		}
		if o.kind != srcVar {
			continue
		}
		if ok {
			return Hole{}, false
		}
		h = Hole{Var: o.slot, Filters: o.filterNames(), at: i,
			Plain: len(o.filters) == 0 && (o.mode == SegRaw || o.mode == SegStrict)}
		ok = true
	}
	return h, ok
}

// Around gives what stands before and behind a hole.
func (t *Template) Around(h Hole, s *Scope) (before, after string, err error) {
	head, tail := Template{ops: t.ops[:h.at]}, Template{ops: t.ops[h.at+1:]}
	b, err := head.Append(nil, s)
	if err != nil {
		return "", "", err
	}
	a, err := tail.Append(nil, s)
	return string(b), string(a), err
}

// Lead is what the keys of a template begin with behind its literal text: the reference, its filters and its value
// before them. ok is false where that is a salt, or the item lacks the value, and where there is no reference.
func (t *Template) Lead(s *Scope) (name, value string, filters []string, ok bool) {
	for i := range t.ops {
		o := &t.ops[i]
		switch o.kind {
		case srcLiteral:
			continue
		case srcSalt:
			return "", "", nil, false
		}
		value, err := o.text(s)
		return o.name, value, o.filterNames(), err == nil
	}
	return "", "", nil, false
}
