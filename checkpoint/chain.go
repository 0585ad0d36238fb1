package checkpoint

import "fmt"

// Chain decides which message is the next entry of a log. The fold of the state and the readers of
// all sinks use it, so that they ignore the same messages: its Accept is the one place where
// readers enforce Rule 2, the log has one writer. The zero Chain belongs to an empty log.
type Chain struct {
	Hash     Hash   // of the newest entry
	Format   int    // of the log: no entry in it needs a higher one; 0 before the first claim
	Epoch    uint64 // of the newest claim; 0 before the first one
	Nonce    Nonce  // of the newest claim
	Released bool   // its owner gave the log up

	// Set while a chain that begins in the middle of a log lacks the value. The next entry clears
	// the first two.
	hashUnknown, ownerUnknown, formatUnknown bool
}

// ChainAfter returns the chain after the entry with this hash; a zero hash is unknown. The owner
// and the format of the log are unknown too.
func ChainAfter(newest Hash) Chain {
	return Chain{Hash: newest, hashUnknown: newest == Hash{}, ownerUnknown: true, formatUnknown: true}
}

// ChainFromStart returns the chain of an empty log for a reader, which does not follow when
// snapshots raise the log's format and therefore leaves the format to the fold.
func ChainFromStart() Chain { return Chain{formatUnknown: true} }

// Known reports whether the hash of the newest entry is known. It is not right after ChainAfter
// with a zero hash.
func (c *Chain) Known() bool { return !c.hashUnknown }

// Continues reports whether an entry names the newest one as its predecessor. While that is not
// known, any entry does.
func (c *Chain) Continues(e *Entry) bool { return c.hashUnknown || e.Prev == c.Hash }

// Accept takes an entry, stored as msg, as the next one of the chain. It returns false, and changes
// nothing, when the entry does not count: it continues another history, or its writer does not own
// the log. An entry that counts and needs a newer format than the log's is a *FormatError.
//
// Rule 2: the owner may append until it gives the log up; any process may append a claim of the
// next epoch, or a control entry.
func (c *Chain) Accept(e *Entry, msg []byte) (bool, error) { return c.accept(e, HashOf(msg)) }

// accept is Accept of an entry with this hash.
func (c *Chain) accept(e *Entry, hash Hash) (bool, error) {
	if !c.Continues(e) || !c.mayWrite(e) {
		return false, nil
	}
	if err := c.checkFormat(e.Body); err != nil {
		return true, err
	}
	c.Hash, c.hashUnknown = hash, false
	switch e.Kind {
	case KindControl:
		return true, nil
	case KindClaim:
		c.Epoch, c.Nonce, c.Released = e.Epoch, e.Nonce, false
	case KindRelease:
		c.Released = true
	}
	if c.ownerUnknown {
		c.Epoch, c.Nonce, c.ownerUnknown = e.Epoch, e.Nonce, false
	}
	return true, nil
}

func (c *Chain) mayWrite(e *Entry) bool {
	switch {
	case e.Kind == KindControl || c.ownerUnknown:
		return true
	case e.Kind == KindClaim:
		return e.Epoch == c.Epoch+1
	}
	return c.Epoch > 0 && !c.Released && e.Epoch == c.Epoch && e.Nonce == c.Nonce
}

// maxForeign is how many messages of other programs in a row may lie between an entry and its
// predecessor.
const maxForeign = 16

// Predecessor reports whether the entry before a sequence of a log that begins at first has the
// hash want. A trimmed entry is not checked. fetch returns the message at a sequence; nil: there is
// none.
//
// chain is the chain of a snapshot at that entry, or nil. With it, none of the messages in between
// may be its next entry. Otherwise another program has stored an old snapshot again, and a fold
// from it would leave out what was stored since (Rule 2).
func Predecessor(first, before uint64, want Hash, chain *Chain, fetch func(uint64) ([]byte, error)) (bool, error) {
	for seq := before - 1; seq+maxForeign >= before; seq-- {
		if seq < first {
			return true, nil // trimmed
		}
		msg, err := fetch(seq)
		if err != nil {
			return false, err
		}
		if msg == nil {
			continue
		}
		if HashOf(msg) == want {
			return true, nil
		}
		e, err := Decode(msg)
		if err == nil && (seq == first || chain != nil && chain.isNext(e, msg)) {
			return false, nil // an entry of another chain
		}
	}
	return false, nil
}

// isNext reports whether an entry is the next one of the chain, which stays as it is.
func (c *Chain) isNext(e *Entry, msg []byte) bool {
	next := *c
	ok, _ := next.Accept(e, msg)
	return ok
}

// checkFormat returns a *FormatError for an entry that needs a newer format than the log's.
//
// Rule 11: only the first claim and snapshots decide it. A snapshot that carries a newer format
// raises the log.
func (c *Chain) checkFormat(body any) error {
	if c.formatUnknown {
		return nil
	}
	need := FormatOf(body)
	switch body.(type) {
	case *Claim:
		if c.Epoch == 0 {
			return nil
		}
	case *Snapshot:
		if need < c.Format {
			return fmt.Errorf("snapshot of format %d in a log of format %d", need, c.Format)
		}
		return nil
	}
	if have := max(1, c.Format); need > have {
		return &FormatError{Need: need, Have: have}
	}
	return nil
}
