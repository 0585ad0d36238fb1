package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// lineage is a drawing of shards: a column for each generation, lines from parents to children.
type lineage struct {
	Width, Height  int
	Label, Omitted string
	Nodes          []node
	Edges          []string
}

// node is a shard, or a group of shards of one generation and phase.
type node struct {
	Class, Title, Name, State          string
	X, Y, TextX, NameY, StateY, column int
	shards                             []status.Shard
}

// The drawing is bounded: a column with more shards than these shows groups, and only the newest
// columns are drawn.
const (
	generations = 8
	perColumn   = 12

	nodeWidth, nodeHeight = 170, 40
	columnStep, rowStep   = 230, 54
)

// phases in the order in which groups stand in a column.
var phases = []string{"lost", "open", "closed", "waiting", "done"}

// draw lays out the shards; more of them, which are older, are not given.
func draw(shards []status.Shard, more int) *lineage {
	l := &lineage{}
	columns, omitted := intoColumns(shards)
	of := map[string]*node{} // by shard
	live := 0
	for i, column := range columns {
		for k, n := range nodesOf(column, of) {
			n.column, n.X, n.Y = i, 10+i*columnStep, 10+k*rowStep
			n.TextX, n.NameY, n.StateY = n.X+10, n.Y+17, n.Y+32
			for _, sh := range n.shards {
				of[sh.ID] = n
			}
			if n.Class != "done" && n.Class != "done group" {
				live += len(n.shards)
			}
			l.Height = max(l.Height, n.Y+nodeHeight+10)
			l.Width = max(l.Width, n.X+nodeWidth+10)
		}
	}
	drawn := map[[2]*node]bool{}
	for _, sh := range shards {
		child, parent := of[sh.ID], of[sh.Parent]
		if child == nil || parent == nil || child == parent || drawn[[2]*node{parent, child}] {
			continue
		}
		drawn[[2]*node{parent, child}] = true
		x1, y1, x2, y2 := parent.X+nodeWidth, parent.Y+nodeHeight/2, child.X, child.Y+nodeHeight/2
		l.Edges = append(l.Edges, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+30, y1, x2-30, y2, x2, y2))
	}
	seen := map[*node]bool{}
	for _, sh := range shards {
		if n := of[sh.ID]; n != nil && !seen[n] {
			seen[n] = true
			l.Nodes = append(l.Nodes, *n)
		}
	}
	l.Label = fmt.Sprintf("Lineage of %s, %d of them still to be read, from parents at the left to children at the right",
		countText(len(shards)+more, "shard"), live)
	if n := omitted + more; n > 0 {
		l.Omitted = countText(n, "older shard") + " not drawn."
	}
	return l
}

// intoColumns sorts shards by generation, and leaves out the oldest generations beyond the limit.
func intoColumns(shards []status.Shard) (columns [][]status.Shard, omitted int) {
	parents, depths := map[string]string{}, map[string]int{}
	for _, sh := range shards {
		parents[sh.ID] = sh.Parent
	}
	depth := func(id string) int {
		var path []string
		for {
			if _, known := depths[id]; known || len(path) > len(shards) { // a cycle: the service makes none
				break
			}
			path = append(path, id)
			parent := parents[id]
			if _, listed := parents[parent]; !listed {
				break
			}
			id = parent
		}
		for _, p := range slices.Backward(path) {
			if d, known := depths[parents[p]]; known {
				depths[p] = d + 1
			} else {
				depths[p] = 0
			}
		}
		if len(path) > 0 {
			id = path[0]
		}
		return depths[id]
	}
	deepest := 0
	for _, sh := range shards {
		deepest = max(deepest, depth(sh.ID))
	}
	first := max(0, deepest-generations+1)
	columns = make([][]status.Shard, deepest-first+1)
	for _, sh := range shards {
		d := depths[sh.ID]
		if d < first && sh.Phase == "done" {
			omitted++
			continue
		}
		at := max(0, d-first) // one that is still read is drawn, however old
		columns[at] = append(columns[at], sh)
	}
	return columns, omitted
}

// nodesOf returns the nodes of a column: its shards in the order of their parents, or groups of
// them. of holds the nodes of the columns before.
func nodesOf(column []status.Shard, of map[string]*node) (nodes []*node) {
	if len(column) <= perColumn {
		slices.SortStableFunc(column, func(a, b status.Shard) int {
			return cmp.Compare(rowOf(of[a.Parent]), rowOf(of[b.Parent]))
		})
		for _, sh := range column {
			nodes = append(nodes, &node{
				Class: sh.Phase, Title: sh.ID + ", " + sh.Phase + ", " + sh.Position, Name: short(sh.ID), State: stateOf(&sh),
				shards: []status.Shard{sh},
			})
		}
		return nodes
	}
	for _, phase := range phases {
		n := &node{Class: phase + " group"}
		worst, known := time.Duration(0), false
		for _, sh := range column {
			if sh.Phase == phase {
				n.shards = append(n.shards, sh)
				worst, known = max(worst, sh.Lag), known || sh.LagKnown
			}
		}
		if len(n.shards) == 0 {
			continue
		}
		n.Name, n.State = countText(len(n.shards), "shard"), phase
		if known {
			n.State += ", lag up to " + periodText(worst.Seconds())
		}
		n.Title = n.Name + ", " + n.State
		nodes = append(nodes, n)
	}
	return nodes
}

func rowOf(n *node) int {
	if n == nil {
		return -1
	}
	return n.Y
}

// stateOf returns phase and lag of a shard.
func stateOf(sh *status.Shard) string {
	if !sh.LagKnown {
		return sh.Phase
	}
	return sh.Phase + ", lag " + periodText(sh.Lag.Seconds())
}

// short returns the part of a shard's name that distinguishes it from others.
func short(id string) string {
	if i := strings.LastIndexByte(id, '-'); i >= 0 && len(id)-i > 4 {
		return "…" + id[i:]
	}
	return id[max(0, len(id)-12):]
}
