package expr

import (
	"sort"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
)

// Step is one part of a document path: a name, or an index into a list.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// Path is a document path; the first step is a top-level attribute's name.
type Path []Step

func (p Path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		parts[i] = s.Name
		if s.IsIndex {
			parts[i] = "[" + strconv.Itoa(s.Index) + "]"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Find returns the value that the path leads to in an item, or nil.
func (p Path) Find(item attr.Map) *attr.Value {
	v := item.Get(p[0].Name)
	for _, s := range p[1:] {
		if v == nil {
			return nil
		}
		v = s.in(v)
	}
	return v
}

func (s Step) in(v *attr.Value) *attr.Value {
	switch {
	case s.IsIndex && v.Kind == attr.L && s.Index < len(v.List):
		return &v.List[s.Index]
	case !s.IsIndex && v.Kind == attr.M:
		return v.Map.Get(s.Name)
	}
	return nil
}

// path reads a document path and resolves its placeholders.
func (p *parser) path() Path {
	path := Path{{Name: p.pathName()}}
	for {
		switch {
		case p.take("."):
			path = append(path, Step{Name: p.pathName()})
		case p.peek().sym("["):
			p.at++
			t := p.peek()
			if t.kind != tokNumber {
				p.unexpected()
			}
			p.at++
			n, err := strconv.ParseInt(t.text, 10, 32)
			if err != nil {
				p.fault(faultOperand, "List index is not within the allowable range; index: ["+t.text+"]")
			}
			p.want("]")
			path = append(path, Step{Index: int(n), IsIndex: true})
		default:
			if len(path) > attr.MaxLevels {
				p.fault(faultOperand, "The document path has too many nesting elements; nesting elements: "+strconv.Itoa(len(path)))
			}
			return path
		}
	}
}

func (p *parser) pathName() string {
	t := p.peek()
	switch t.kind {
	case tokWord:
		if reserved[strings.ToUpper(t.text)] {
			p.fault(faultReserved, "Attribute name is a reserved keyword; reserved keyword: "+t.text)
		}
		p.at++
		return t.text
	case tokName:
		p.at++
		name, ok := p.env.Names[t.text]
		if !ok {
			p.fault(faultName, "An expression attribute name used in the document path is not defined; attribute name: "+t.text)
		}
		p.env.usedNames[t.text] = true
		return name
	}
	p.unexpected()
	return ""
}

// addPath checks a path against those before it: two paths of one update or projection
// may not overlap, nor treat one thing as map and list.
func (p *parser) addPath(paths []Path, path Path) []Path {
	for _, other := range paths {
		p.checkPaths(other, path)
	}
	return append(paths, path)
}

func (p *parser) checkPaths(a, b Path) {
	const rest = "must remove or rewrite one of these paths; path one: "
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i].IsIndex != b[i].IsIndex {
			p.fault(faultConflict, "Two document paths conflict with each other; "+rest+a.String()+", path two: "+b.String())
			return
		}
		if a[i] != b[i] {
			return
		}
	}
	p.fault(faultOverlap, "Two document paths overlap with each other; "+rest+a.String()+", path two: "+b.String())
}

// Projection is a set of paths, ready to cut items down to them.
type Projection struct {
	Paths []Path
	tree  branch
}

type branch struct {
	names   map[string]*branch
	indexes map[int]*branch
	leaf    bool
}

// NewProjection makes a projection of paths that do not overlap.
func NewProjection(paths []Path) *Projection {
	p := &Projection{Paths: paths}
	for _, path := range paths {
		b := &p.tree
		for _, s := range path {
			b = b.child(s)
		}
		b.leaf = true
	}
	return p
}

// TopLevel is a projection of whole attributes, as the legacy AttributesToGet asks for.
func TopLevel(names []string) *Projection {
	paths := make([]Path, len(names))
	for i, n := range names {
		paths[i] = Path{{Name: n}}
	}
	return NewProjection(paths)
}

func (b *branch) child(s Step) *branch {
	if s.IsIndex {
		if b.indexes == nil {
			b.indexes = map[int]*branch{}
		}
		if b.indexes[s.Index] == nil {
			b.indexes[s.Index] = &branch{}
		}
		return b.indexes[s.Index]
	}
	if b.names == nil {
		b.names = map[string]*branch{}
	}
	if b.names[s.Name] == nil {
		b.names[s.Name] = &branch{}
	}
	return b.names[s.Name]
}

// Of returns what the projection leaves of an item; it shares values with the item.
func (p *Projection) Of(item attr.Map) attr.Map { return p.tree.cut(item) }

func (b *branch) cut(m attr.Map) attr.Map {
	out := attr.Map{}
	for i := range m {
		sub := b.names[m[i].Name]
		if sub == nil {
			continue
		}
		if v, ok := sub.value(&m[i].Value); ok {
			out = append(out, attr.Attr{Name: m[i].Name, Value: v})
		}
	}
	return out
}

func (b *branch) value(v *attr.Value) (attr.Value, bool) {
	if b.leaf {
		return *v, true
	}
	switch {
	case b.names != nil && v.Kind == attr.M:
		m := b.cut(v.Map)
		return attr.Value{Kind: attr.M, Map: m}, len(m) > 0
	case b.indexes != nil && v.Kind == attr.L:
		var at []int
		for i := range b.indexes {
			if i < len(v.List) {
				at = append(at, i)
			}
		}
		sort.Ints(at)
		var list []attr.Value
		for _, i := range at {
			if sub, ok := b.indexes[i].value(&v.List[i]); ok {
				list = append(list, sub)
			}
		}
		return attr.Value{Kind: attr.L, List: list}, len(list) > 0
	}
	return attr.Value{}, false
}
