package sim

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// claimTTL is how long a log must be silent before another process claims it, in ms.
const claimTTL = 15_000

// process is one instance of the daemon. It acts on its own view of the log, which may be old: it
// may be frozen at any step and go on long after another one has claimed the log, and it may die.
type process struct {
	*World
	name  string
	watch protocol.ClaimWatch
	epoch uint64
	nonce checkpoint.Nonce
	s     *checkpoint.State // as of its last acknowledged append or fold; nil: it owns no log, as far as it knows
	doubt bool              // the outcome of an append is unknown
	sent  protocol.Instant  // when its last acknowledged append was sent
	wrote change.Millis     // when its last frame or beat was stored
	log   int               // which of the logs that were made it claimed
	conn  uint64            // the connection of its last fold
	sure  uint64            // its newest acknowledged entry since the last fold

	unanswered checkpoint.Hash // of the append whose outcome is unknown
	claimed    bool            // its newest acknowledged entry is its claim
	*life

	lookedAt  change.Millis
	frozen    int           // steps for which it does nothing
	suspended change.Millis // since when its machine is suspended; 0: it is not
	asleep    change.Millis // how long it was suspended before
	woken     bool          // it was frozen, and has appended nothing since
}

// waited counts a step of a process that is frozen.
func (p *process) waited() {
	switch {
	case p.frozen > 1:
		p.frozen--
	case p.frozen == 1:
		p.thaw()
	}
}

// life is what a process has in memory from a fold on, and loses with the next one.
type life struct {
	pages     []page                   // read, not stored
	packed    *packed                  // a frame of the oldest of them; nil: none is packed
	through   map[string]change.Millis // how far empty reads of open shards reach
	listed    change.Millis            // when its newest complete listing began
	looked    change.Millis            // when it listed last, complete or not
	described change.Millis            // when it last asked for the table's stream
	doubts    map[string]*doubt        // shards that the service denied, with no page since
	ended     bool                     // a shard ended: its children are to be listed
	sink      *sink
	copy      *copying
	follow    *following        // a copy by workers
	marked    []checkpoint.Mark // that were stored
	whole     *whole
	retry     *reading
	known     letters // dead letters, as they were when it began, and as it has changed them since
}

// begin starts a life from a fold.
func (p *process) begin(s *checkpoint.State) {
	p.s, p.doubt, p.conn, p.sure = s, false, p.World.log.conn, 0
	old := p.life
	p.life = &life{
		through: map[string]change.Millis{}, doubts: map[string]*doubt{}, listed: s.Listed, described: p.now, ended: true,
	}
	if p.mutant == RememberPages && old != nil {
		p.pages = old.pages
	}
	if p.mutant == KeepPacked && old != nil && old.packed != nil {
		p.packed, p.pages = old.packed, old.pages[len(old.pages)-old.packed.pages:]
	}
	p.sink, p.known = p.newSink(), p.letters.clone()
}

// claim appends a claim if the log may be claimed.
func (p *process) claim() {
	p.look()
	s := p.fold(p.laggard())
	if !p.mayClaim(s) {
		return
	}
	p.claims(p)
	p.nonces++
	p.epoch, p.nonce = s.Epoch+1, checkpoint.Nonce{byte(p.nonces >> 8), byte(p.nonces)}
	p.log, p.s, p.conn = p.World.log.created, s, p.World.log.conn
	body := &checkpoint.Claim{Owner: fmt.Sprint(p.name, p.nonces), Life: p.lives}
	if s.Epoch == 0 {
		body.Format = checkpoint.Format
		body.Identity = &checkpoint.Identity{Pipeline: "p", Table: "T", TableID: "t", Mapping: "m0"}
	}
	if !p.append(body, nil) {
		if p.s == nil || !p.doubt {
			p.end("the claim was refused")
		}
		return
	}
	p.logf("%s claims epoch %d", p.name, p.epoch)
	p.begin(p.s)
}

// laggard returns how far the replica that a fold reads is behind.
func (p *process) laggard() uint64 { return uint64(p.fault(faultLag, 4)) }

// recover goes on after an unknown outcome.
//
// Rule 4: from what is stored.
func (p *process) recover() {
	if p.World.log.away {
		return
	}
	if p.log != p.World.log.created {
		p.end("its log is gone")
		return
	}
	s := p.fold(p.laggard())
	if !s.OwnedBy(p.epoch, p.nonce) {
		p.reachedIf(!p.reachedIf(p.claimed, claimLost), ownerReplaced)
		p.end("the log has another owner")
		return
	}
	p.noteOutcome()
	p.logf("%s goes on from entry %d", p.name, s.Seq)
	p.begin(s)
}

// noteOutcome counts what has become of the append that was not answered.
func (p *process) noteOutcome() {
	if p.unanswered == (checkpoint.Hash{}) {
		return
	}
	l, stored := p.World.log, false
	for seq := p.s.Seq + 1; seq <= l.last(); seq++ {
		stored = stored || checkpoint.HashOf(l.at(seq).data) == p.unanswered
	}
	p.reachedIf(!p.reachedIf(stored, outcomeStored), outcomeLost)
	p.unanswered = checkpoint.Hash{}
}
