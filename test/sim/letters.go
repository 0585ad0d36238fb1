package sim

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// lettered are the options of a history in which the target refuses changes. Losses of the log are
// left out: they take the dead letters along, and a resync of the whole table follows.
var lettered = Options{items: 4, shards: 2, processes: 3, steps: 300, backfill: true, rest: 8000, letters: true}

// retryPeriod is the time between two retries of dead letters, in ms.
const retryPeriod change.Millis = 20_000

// lettersMutant is a defence of the dead letters that is taken away.
type lettersMutant int

const (
	allLetterDefences lettersMutant = iota
	// lettersByVersion takes letters up to the time of the reading for what the reading shows.
	lettersByVersion
	// lettersOverAnything applies letters over rows that hold something else than what was read.
	lettersOverAnything
	// lettersUnwritten drops the letters behind a put without writing what they changed.
	lettersUnwritten
	// lettersForgotten drops the note that an item is dirty once one of its changes is a letter.
	lettersForgotten
	// lettersElsewhere puts an item without the rows that the images of its letters have.
	lettersElsewhere
	lettersMutants
)

// letter is a dead letter: a change that the target refused.
type letter struct {
	*record
	c      change.Change
	behind bool // the item was dirty when it was refused
}

// letters are dead letters by item, in version order.
type letters map[*item][]*letter

func (ls letters) clone() letters {
	out := letters{}
	for x, list := range ls {
		out[x] = slices.Clone(list)
	}
	return out
}

func (ls letters) put(l *letter) {
	has := func(o *letter) bool { return o.record == l.record }
	if !slices.ContainsFunc(ls[l.item], has) {
		ls[l.item] = append(ls[l.item], l)
	}
}

func (ls letters) drop(l *letter) {
	ls[l.item] = slices.DeleteFunc(ls[l.item], func(o *letter) bool { return o.record == l.record })
	if len(ls[l.item]) == 0 {
		delete(ls, l.item)
	}
}

// dirtyFrom returns the lowest version of an item's letters, as far as the process has read them;
// false without one.
func (p *process) dirtyFrom(x *item) (change.Version, bool) {
	list := p.known[x]
	if len(list) == 0 || p.o.lettersWithout == lettersForgotten {
		return 0, false
	}
	return list[0].c.Version, true
}

// beforeLetters splits the first write of a lane where a dead letter of its item begins, and
// returns what comes before: that is applied.
func (p *process) beforeLetters(ln *lane) []*job {
	unit := ln.units[0]
	if !p.o.letters || unit[0].op != nil {
		return unit
	}
	from, dirty := p.dirtyFrom(unit[0].record.item)
	n := slices.IndexFunc(unit, func(j *job) bool { return dirty && j.c.Version >= from })
	if n > 0 {
		ln.units = slices.Insert(ln.units, 1, unit[n:])
		ln.units[0] = unit[:n]
	}
	return ln.units[0]
}

// refuses stores changes of an item as dead letters, if the target refuses them or if they may not
// be sent because an earlier change of the item is one (Rule 8). It returns false where they are to
// be sent.
func (p *process) refuses(unit []*job) bool {
	if !p.o.letters || unit[0].op != nil {
		return false
	}
	from, dirty := p.dirtyFrom(unit[0].record.item)
	dirty = dirty && unit[0].c.Version >= from
	if (!dirty || p.heals(unit)) && (len(unit) > 1 || !p.one(10)) {
		p.reachedIf(dirty, letterHealed)
		return false
	}
	p.reachedIf(dirty, letterBehind)
	for _, j := range unit {
		l := &letter{record: j.record, c: j.c, behind: dirty}
		p.logf("%s has a dead letter: write %d of item %d, version %d, behind another: %v",
			p.name, j.record.n, j.record.item.n, j.c.Version, dirty)
		j.record.lettered = true
		p.letters.put(l)
		p.known.put(l)
		dirty = true
	}
	return true
}

// heals reports whether a write of the changes repairs what an earlier letter left behind.
func (p *process) heals(unit []*job) bool {
	var write transform.Write
	p.dec.Reset()
	p.must(p.mapping.program.Change(&p.dec, &unit[len(unit)-1].c, &write))
	return write.Heals
}

// retried is the work on the letters of an item, around the put of an operation.
type retried struct {
	phase   int
	open    []*letter // not tried yet
	before  *letter   // that was applied just now
	applied map[*letter]bool
	put     protocol.Put
}

// note counts a row of the put: whether it was skipped, and at the version of the put.
func (x *retried) note(skipped, same bool) {
	switch {
	case !skipped:
		x.put.Written++
		return
	case same:
		x.put.Again++
	}
	x.put.Skipped++
}

const (
	putting = iota
	behindPut
	oneByOne
	dropping
	retryEnded
)

// proceed returns the next requests of an operation; none at its end.
func (p *process) proceed(op *operation) (reqs []bigtable.RowWrite, err error) {
	if !p.o.letters {
		return nil, nil
	}
	for len(reqs) == 0 && err == nil && op.retried.phase < retryEnded {
		switch x := &op.retried; x.phase {
		case putting:
			x.phase++
			reqs, err = p.prepareResync(op)
		case behindPut:
			x.phase++
			reqs = p.catchUp(op)
		case oneByOne:
			reqs = p.nextLetter(op)
		case dropping:
			x.phase++
			p.dropLetters(op)
			for _, l := range p.known[op.item] { // some of the rows hold what was read by now
				l.behind = l.behind || x.put.Written+x.put.Equal+x.put.Again > 0 && p.o.lettersWithout != lettersOverAnything
			}
		}
	}
	return reqs, err
}

// beginRetry notes the letters of the operation's item, and the rows that they name.
func (p *process) beginRetry(op *operation) {
	op.rows = append(slices.Clip(op.rows), p.rowsOfLetters(op.item)...)
	op.retried = retried{applied: map[*letter]bool{}}
	for _, l := range p.known[op.item] {
		if l.c.Version > op.version {
			op.retried.open = append(op.retried.open, l)
		}
	}
}

// rowsOfLetters returns the rows that the images of an item's letters have: what the target holds
// of the item may be there.
func (p *process) rowsOfLetters(x *item) (rows [][]byte) {
	if p.o.lettersWithout == lettersElsewhere {
		return nil
	}
	for _, l := range p.known[x] {
		for _, image := range [][]byte{l.c.Old, l.c.New} {
			if image == nil {
				continue
			}
			for row := range p.mapping.project(p.World, image) {
				rows = append(rows, []byte(row))
			}
		}
	}
	return rows
}

// nextLetter returns the requests of the next letter above the put, at its own version; none behind
// one that is refused again.
func (p *process) nextLetter(op *operation) (reqs []bigtable.RowWrite) {
	x := &op.retried
	how := protocol.CatchUpOf(x.put, protocol.FollowNot)
	if len(x.open) == 0 || how != protocol.LettersApart && p.o.lettersWithout != lettersOverAnything {
		x.phase++
		return nil
	}
	l := x.open[0]
	x.open = x.open[1:]
	follows := x.before == nil && !l.behind || x.before != nil && protocol.SameImage(x.before.c.New, l.c.Old)
	var write transform.Write
	p.dec.Reset()
	p.must(p.mapping.program.Change(&p.dec, &l.c, &write))
	if !write.Heals && !follows || p.one(3) {
		p.reached(letterAgain)
		x.open = nil
		return nil
	}
	p.reached(lettersApart)
	x.before, x.applied[l] = l, true
	reqs, err := bigtable.Requests(&write, families)
	p.must(err)
	return reqs
}

// catchUp returns the requests that write the letters above the put at once.
func (p *process) catchUp(op *operation) []bigtable.RowWrite {
	x := &op.retried
	var open []*letter
	var changes []*change.Change
	for _, l := range p.known[op.item] {
		if l.c.Version > op.version && !x.applied[l] {
			open, changes = append(open, l), append(changes, &l.c)
		}
	}
	follow := protocol.FollowOf(op.image, changes)
	how := protocol.CatchUpOf(x.put, follow)
	p.reachedIf(len(open) > 0 && follow == protocol.FollowNot, lettersUnlike)
	p.reachedIf(how == protocol.LettersStay && follow != protocol.FollowNot, lettersMixed)
	p.reachedIf(len(open) > 0 && x.put.Again > 0, putAgain)
	if how != protocol.LettersTogether {
		return nil
	}
	p.reached(lettersTogether)
	for _, l := range open {
		x.applied[l] = p.o.lettersWithout != lettersByVersion || l.c.Version <= change.Version(op.read.Requested)
	}
	if p.o.lettersWithout == lettersUnwritten || p.o.lettersWithout == lettersByVersion {
		return nil
	}
	var write transform.Write
	p.dec.Reset()
	p.must(p.mapping.program.Coalesce(&p.dec, changes, &write))
	p.logf("%s applies %d letters of item %d over commit %d, at %d",
		p.name, len(open), op.item.n, op.commit, write.Version)
	reqs, err := bigtable.Requests(&write, families)
	p.must(err)
	return reqs
}

// dropLetters deletes the letters that were applied or are below the put, the newest first.
func (p *process) dropLetters(op *operation) {
	for _, l := range slices.Backward(slices.Clone(p.known[op.item])) {
		if l.c.Version > op.version && !op.retried.applied[l] {
			continue
		}
		p.known.drop(l)
		p.letters.drop(l)
		if p.reachedIf(p.one(40), letterKept) {
			return // the store does not answer; the earlier ones are tried again
		}
	}
}

// retryStep returns the next step of a retry of all dead letters; nil when it has to wait.
func (p *process) retryStep() func() {
	if !p.o.letters || p.s.Fence != nil {
		return nil
	}
	switch r := p.retry; {
	case r == nil && len(p.known) > 0 && p.now-p.retriedAt > retryPeriod:
		return p.readLettered
	case r == nil:
		return nil
	case !r.begun && p.old(r), r.begun && r.open == 0:
		return func() { p.retry = nil }
	case !r.begun && p.proved(r):
		return func() { p.submit(r) }
	}
	return nil
}

// readLettered reads the items that have letters.
func (p *process) readLettered() {
	var all []*item
	for _, x := range p.items {
		if len(p.known[x]) > 0 {
			all = append(all, x)
		}
	}
	p.retriedAt = p.now
	p.retry = p.readItems(all, false, true)
}

// retrying reports whether a process works on a retry.
func (w *World) retrying() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool { return p.owns() && p.life != nil && p.retry != nil })
}
