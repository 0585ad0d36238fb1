package limit

// What counts as much: a burst now and then, or a single failed call or read, limits nothing.
const (
	// share is the part of the looks at which something must wait, or be short: a quarter.
	share = 4
	// refusedShare is the part of the calls from which refusals limit a table with so few calls that
	// the bound is not adapted in the last seconds: a tenth, as refusedMany in sink/bigtable.
	refusedShare = 10
	// lagging is how many full reads in the last seconds show that DynamoDB has more than was read.
	// A shard takes 1,000 records a second, and is read several times a second: one that keeps up
	// has none.
	lagging = 3
	// failedReads and failedShare are how many reads must fail, and which part of them.
	failedReads, failedShare = 2, 4
)

// Judge returns what limits a table: a function of the facts. Whatever is further down the way of
// the changes is judged first, because what comes before it is held up by it.
func Judge(f *Facts) By {
	if p := f.waits(&f.Sink); p != Nowhere {
		switch {
		case p == AtRetry, p != AtLog && f.refused():
			return Refusals
		case f.cpuShort():
			return CPU
		}
		return wordOf[p]
	}
	if p := f.waits(&f.Reading); p != Nowhere {
		if p != AtMemory && f.cpuShort() {
			return CPU
		}
		return wordOf[p]
	}
	if f.sourceBehind() {
		return Source
	}
	return Nothing
}

// wordOf is what limits when changes wait at a place and nothing else explains it.
var wordOf = [places]By{
	AtCall: Latency, AtRetry: Refusals, AtMemory: Memory, AtLog: Log, AtProcessor: CPU,
}

// waits returns the place at which changes waited at most looks; Nowhere if they waited at less than
// a quarter of them.
func (f *Facts) waits(at *[places]int) Place {
	if (f.Looks-at[Nowhere])*share < f.Looks {
		return Nowhere
	}
	most := Nowhere + 1
	for p := most + 1; p < places; p++ {
		if at[p] > at[most] {
			most = p
		}
	}
	return most
}

// refused reports whether Bigtable refuses calls: the bound was cut because of that, or a tenth of
// the calls was refused.
func (f *Facts) refused() bool {
	c := &f.Counts
	return c.Cuts > 0 || c.Overloads > 0 && c.Overloads*refusedShare >= c.Calls
}

// cpuShort reports whether goroutines waited for processors at a quarter of the looks.
func (f *Facts) cpuShort() bool { return f.CPUShort > 0 && f.CPUShort*share >= f.Looks }

// sourceBehind reports whether DynamoDB holds more than it gives: reads come back full, or fail.
func (f *Facts) sourceBehind() bool {
	c := &f.Counts
	return f.Throttled || c.FullReads >= lagging || c.FailedReads >= failedReads && c.FailedReads*failedShare >= c.Reads
}
