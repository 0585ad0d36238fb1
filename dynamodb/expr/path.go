package expr

import (
	"sort"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
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

// in returns the value that a step leads to within v, nil if there is none.
func (s Step) in(v *attr.Value) *attr.Value {
	switch {
	case s.IsIndex && v.Kind == attr.L && s.Index < len(v.List):
		return &v.List[s.Index]
	case !s.IsIndex && v.Kind == attr.M:
		return v.Map.Get(s.Name)
	}
	return nil
}

// path parses a document path and replaces its placeholders.
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
				p.violation(badOperand, "List index is not within the allowable range; index: ["+t.text+"]")
			}
			p.want("]")
			path = append(path, Step{Index: int(n), IsIndex: true})
		default:
			if len(path) > attr.MaxLevels {
				p.violation(badOperand, "The document path has too many nesting levels; nesting levels: "+
					strconv.Itoa(len(path)))
			}
			return path
		}
	}
}

// pathName parses one name of a path: a word or a placeholder.
func (p *parser) pathName() string {
	t := p.peek()
	switch t.kind {
	case tokWord:
		if reserved[strings.ToUpper(t.text)] {
			p.violation(badReserved, "Attribute name is a reserved keyword; reserved keyword: "+t.text)
		}
		p.at++
		return t.text
	case tokName:
		p.at++
		name, ok := p.env.Names[t.text]
		if !ok {
			p.violation(badName, "An expression attribute name used in the document path is not defined; attribute name: "+
				""+t.text)
		}
		p.env.usedNames[t.text] = true
		return name
	}
	p.unexpected()
	return ""
}

// addPath checks a path against those before it, and adds it. Two paths of one update or projection
// must not overlap, and must not use the same attribute as a map and as a list.
func (p *parser) addPath(paths []Path, path Path) []Path {
	for _, other := range paths {
		p.checkPaths(other, path)
	}
	return append(paths, path)
}

// checkPaths checks two paths against each other.
func (p *parser) checkPaths(a, b Path) {
	const rest = "must remove or rewrite one of these paths; path one: "
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i].IsIndex != b[i].IsIndex {
			p.violation(badConflict, "Two document paths conflict with each other; "+rest+a.String()+", path two: "+b.String())
			return
		}
		if a[i] != b[i] {
			return
		}
	}
	p.violation(badOverlap, "Two document paths overlap with each other; "+rest+a.String()+", path two: "+b.String())
}

// Projection selects the parts of items at a set of paths.
type Projection struct {
	Paths []Path
	tree  branch
}

// branch is a node of the tree of a projection's paths.
type branch struct {
	names   map[string]*branch
	indexes map[int]*branch
	leaf    bool
}

// NewProjection returns a projection of paths that do not overlap.
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

// TopLevel returns a projection of whole attributes, as the legacy AttributesToGet selects them.
func TopLevel(names []string) *Projection {
	paths := make([]Path, len(names))
	for i, n := range names {
		paths[i] = Path{{Name: n}}
	}
	return NewProjection(paths)
}

// child returns the branch of a step, a new one if there is none.
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

// Of returns the projection of an item, which shares values with the item.
func (p *Projection) Of(item attr.Map) attr.Map { return p.tree.project(item) }

// project returns the selected attributes of a map.
func (b *branch) project(m attr.Map) attr.Map {
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

// value returns the selected part of a value; false if there is none.
func (b *branch) value(v *attr.Value) (attr.Value, bool) {
	if b.leaf {
		return *v, true
	}
	switch {
	case b.names != nil && v.Kind == attr.M:
		m := b.project(v.Map)
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
