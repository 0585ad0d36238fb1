package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// spot is a position in the file, both from 1.
type spot struct{ line, column int }

// places knows the path of every key and value of the file, and the way back.
type places struct {
	byPath map[string]*yaml.Node // key node of a block's entry, item node of a list
	values map[string]*yaml.Node
	bySpot map[spot]string

	doubles []double
}

// double is a key that its block has already.
type double struct {
	path string
	line int
}

func locate(root *yaml.Node) places {
	p := places{byPath: map[string]*yaml.Node{}, values: map[string]*yaml.Node{}, bySpot: map[spot]string{}}
	p.walk(root, "")
	return p
}

// walk enters n and what is below it; the later one of two equal keys is taken out, so that the rest can be decoded.
func (p *places) walk(n *yaml.Node, path string) {
	if _, taken := p.bySpot[spot{n.Line, n.Column}]; !taken {
		p.bySpot[spot{n.Line, n.Column}] = path
	}
	p.values[path] = n
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			p.walk(c, path)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			child := strings.TrimPrefix(path+"."+key.Value, ".")
			if p.written(child) {
				p.doubles = append(p.doubles, double{child, key.Line})
				n.Content = slices.Delete(n.Content, i, i+2)
				i -= 2
				continue
			}
			p.byPath[child] = key
			p.bySpot[spot{key.Line, key.Column}] = child // a block starts where its first key does: the key wins
			p.walk(n.Content[i+1], child)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			child := fmt.Sprintf("%s[%d]", path, i)
			p.byPath[child] = c
			p.walk(c, child)
		}
	}
}

func (p places) written(path string) bool { return p.byPath[path] != nil }

// line returns where path stands, or the nearest block around it; 0 if nothing of it is written.
func (p places) line(path string) int {
	for path != "" {
		if n, ok := p.byPath[path]; ok {
			return n.Line
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return 0
}

// parent cuts the last step off a path.
func parent(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}
