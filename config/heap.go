package config

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// HeapNeed is the heap size of run under a configuration, garbage included.
type HeapNeed struct {
	Usual int64 // with items of a few KB
	Most  int64 // with items of hundreds of KB in every table, and a backfill that fills memory.copy
}

const (
	programPages = 64 << 20 // memory of the process outside the heap
	frameBytes   = 8 << 20  // per table: the entry that is being applied, unpacked and as pending writes
	pageBytes    = 2 << 20  // per table: the page that is being read
	blockBytes   = 8 << 20  // per log: the block that the embedded server writes and reads
)

// HeapNeed estimates the heap. One table works with half as much again as the memory of the
// configuration, for the server's blocks, calls in flight and connections. Twice that leaves room for
// garbage, and collecting it takes a sixth less CPU. Each further table may hold an entry, a page and
// a block regardless of the budgets, so that no table waits for another one.
func (c *Config) HeapNeed() HeapNeed {
	perTable := int64(frameBytes + pageBytes)
	if c.Queue.URL == "" {
		perTable += blockBytes
	}
	further := perTable * int64(max(len(c.Tables)-1, 0))
	usual := max(int64(c.Memory.Total)*3+12<<20, 128<<20) + further
	return HeapNeed{Usual: usual, Most: max(usual, int64(c.Memory.Total)*3+144<<20+2*further+2*int64(c.Memory.Copy))}
}

// Limit returns the heap limit for a number of live bytes and of bytes of stacks, which count in it
// too: 1.5 times the live bytes and all stacks, at least Usual and at most Most. With a lower limit
// the garbage collector runs so often that it takes up to half of the CPU, or more than half where
// thousands of calls are in flight and their stacks take what the limit allows.
func (n HeapNeed) Limit(live, stacks int64) int64 { return min(max(live*3/2+stacks, n.Usual), n.Most) }

// ProcessBytes returns the memory of the whole process when its heap has the given size.
func ProcessBytes(heap int64) int64 { return heap + programPages }

// Shortage names the memory limit of this process that is below the need; it returns "" when every
// limit is high enough.
func (n HeapNeed) Shortage() string { return n.shortage(debug.SetMemoryLimit(-1), containerLimit()) }

func (n HeapNeed) shortage(goLimit, container int64) string {
	mib := func(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }
	switch {
	case goLimit < n.Usual:
		return fmt.Sprintf("the heap needs %s, $GOMEMLIMIT is %s", mib(n.Usual), mib(goLimit))
	case container < ProcessBytes(n.Usual):
		return fmt.Sprintf("the process needs %s, its control group has %s", mib(ProcessBytes(n.Usual)), mib(container))
	}
	return ""
}

// containerLimit returns the memory limit of the control group of this process, or the largest
// number if there is none.
func containerLimit() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return math.MaxInt64
	}
	return n
}
