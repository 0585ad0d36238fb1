package tmpl

// VarPlace is the place of the only variable in a template. Removing the texts before and after it
// from a column name gives the variable's text back.
type VarPlace struct {
	Var     int
	Plain   bool     // the text there is the variable's own, neither filtered nor escaped
	Filters []string // names
	at      int
}

// VarPlace returns the place of the template's variable; ok is false if there is none or several,
// or if a salt is computed from the variable.
func (t *Template) VarPlace() (h VarPlace, ok bool) {
	for i := range t.ops {
		o := &t.ops[i]
		for j := range o.salt {
			if o.salt[j].kind == srcVar {
				return VarPlace{}, false
			}
		}
		if o.kind != srcVar {
			continue
		}
		if ok {
			return VarPlace{}, false
		}
		h = VarPlace{Var: o.slot, Filters: o.filterNames(), at: i,
			Plain: len(o.filters) == 0 && (o.mode == SegRaw || o.mode == SegStrict)}
		ok = true
	}
	return h, ok
}

// TextsAround returns the texts before and after a hole.
func (t *Template) TextsAround(h VarPlace, s *Scope) (before, after string, err error) {
	head, tail := Template{ops: t.ops[:h.at]}, Template{ops: t.ops[h.at+1:]}
	b, err := head.Append(nil, s)
	if err != nil {
		return "", "", err
	}
	a, err := tail.Append(nil, s)
	return string(b), string(a), err
}

// Lead returns the first reference of the template, its filters, and its value before they are
// applied. ok is false if the first reference is a salt, if there is none, or if the item lacks the
// value.
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
