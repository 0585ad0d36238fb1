package config

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// HeapNeed is the heap size of run under a configuration, garbage included, while every table has a
// backlog.
type HeapNeed struct {
	Usual int64 // with items of a few KB
	Most  int64 // with items of hundreds of KB in every table
	Copy  int64 // beside either, while a backfill fills memory.copy
}

const (
	programPages = 64 << 20 // memory of the process outside the heap
	leastHeap    = 128 << 20
	fixedBytes   = 12 << 20 // what does not depend on memory.total: connections, metrics, the page

	// Per table, whatever the budgets: no table waits for another one.
	entryBytes   = 4 << 20 // the entry that is being applied, unpacked
	pageBytes    = 2 << 20 // the page that is being read
	requestBytes = 2 << 20 // entries that were requested from the log ahead
	blockBytes   = 8 << 20 // with the embedded server: a block of the log

	// Per table with large items that is at work. Pages of so many bytes are read at once.
	largeBytes = 8 << 20 // an entry is twice as large, packed and unpacked
	readBytes  = 3 << 19
)

// BlockMemory is how many bytes the embedded server may take for blocks that were read while they
// were written (queue.Options).
const BlockMemory = 128 << 20

// Pages returns how many bytes of pages may be in memory on one side of the log, all tables
// together: the rest is for the frames and calls made from them.
func (m Memory) Pages() int64 { return int64(m.Total) / 6 }

// HeapNeed estimates the heap. One table works with half as much again as the memory of the
// configuration, for the server's blocks, calls in flight and connections. Twice that leaves room
// for garbage, and collecting it takes a sixth less CPU.
//
// Each further table has its own entry, page and requested entries. With the embedded server it
// also has the block that is being written: half of one on average, a whole one where items are
// large.
//
// Large items keep as many tables busy at once as pages fit in the memory for them. Each of these
// has larger entries. With the embedded server it also has the block that is being read, two that
// pools keep until the second collection, and the entry that is being stored, in the server's copy.
// One table does all of that within its own part; only the blocks that the server keeps come above.
func (c *Config) HeapNeed() HeapNeed {
	further := int64(max(len(c.Tables)-1, 0))
	usual := int64(entryBytes + pageBytes + requestBytes)
	working := min(further, c.Memory.Pages()/readBytes)
	most := working * largeBytes
	if c.Queue.URL == "" {
		usual += blockBytes / 2
		most += BlockMemory + further*blockBytes/2 + working*4*blockBytes
	}
	n := HeapNeed{
		Usual: max(int64(c.Memory.Total)*3+fixedBytes, leastHeap) + further*usual,
		Copy:  2 * int64(c.Memory.Copy), // and as much garbage
	}
	n.Most = n.Usual + most
	return n
}

// Limit returns the heap limit for a number of live bytes and of bytes of stacks, which count in it
// too: 1.5 times the live bytes and all stacks, at least Usual and at most Most and Copy. With a
// lower limit the garbage collector runs so often that it takes up to half of the CPU, or more than
// half where thousands of calls are in flight and their stacks take what the limit allows.
func (n HeapNeed) Limit(live, stacks int64) int64 {
	return min(max(live*3/2+stacks, n.Usual), n.Most+n.Copy)
}

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
