package sim

// The branches that are seldom taken. A defence stands at each: where no history takes it, the
// defence could be removed unseen.
const (
	outcomeStored    = "an append without an answer was stored, and the owner goes on behind it"
	outcomeLost      = "an append without an answer was not stored, and is made again"
	packedFollows    = "a frame follows that was packed while the one before it was under way"
	packedAgain      = "a frame that was packed ahead is encoded again, since another entry came between"
	packedDropped    = "a frame that was packed ahead is dropped, since an outcome is unknown"
	lateRefused      = "a late append is refused by its sequence number"
	notInChain       = "a message is stored that is no entry of the log"
	leaderAsked      = "a fold reads what its replica lacks from the leader"
	oldSnapshot      = "a snapshot is not used, since it is an old one again"
	wentBack         = "a pass over the log finds that the log went back"
	trimmedUnder     = "a pass over the log finds its next entry deleted"
	claimLost        = "a claim is lost between the claim and the first entry"
	ownerReplaced    = "an owner that goes on finds another owner"
	silentOwner      = "a silent owner has something to write and may not"
	lateSkipped      = "a late write is refused by its guard"
	writeSkipped     = "a write is refused by its guard"
	partRewound      = "a page of a copy was read too long ago, and is read again"
	resyncRewound    = "items of a resync were read too long ago, and are read again"
	becameUnread     = "a wait for what was read went back to unread"
	waitsListing     = "a wait lacks a listing"
	waitsApplied     = "a wait lacks what is read and not applied"
	beginWaited      = "a resync waits for its begin"
	floorRaised      = "a copy writes at the floor of its life"
	firstAboveFloor  = "the first change of a shard is raised above the floor"
	beforeLife       = "a record from before the life is not applied"
	gapStored        = "a gap is stored"
	gapExcused       = "a gap excuses itself, since it lost what was written before the start"
	gapGrew          = "a gap grows until it is accepted"
	gapBetween       = "a gap between two streams is stored"
	parentsForgotten = "parents that the service has forgotten are finished"
	fenceRefuses     = "an order is refused behind a fence"
	fenceUndone      = "a fence is taken away"
	lied             = "an answer about a shard is not true"
	readOn           = "a denied shard is read on"
	readAgain        = "a shard with an end is read again before it counts as read"
	lastRecordHeld   = "a shard is read to its end, since a page shows its last record alone"
	lastRecordGone   = "the last record of a shard that has ended cannot be read again"
	endIsPosition    = "a shard is read to its end, since its position is the end that is listed"
	readToEnd        = "a shard is read to its end"
	listingFails     = "a listing that should confirm a denial fails, or shows nothing"
	shardReopened    = "a shard that a gap has ended lives, and is read on"
	waitRefused      = "nothing that was written before is asked for while a listed shard is not read"
	readerMissing    = "a wait lacks a reader of a shard that takes records"
	endRefuted       = "a stream that answers that it is off is not taken for ended"
	endWithdrawn     = "a listing withdraws a stream's end"
	copyCanceled     = "a copy is cancelled"
	copyReplaced     = "a mapping is accepted while a copy runs"
	mappingCopied    = "the table is copied for an accepted mapping"
	pageDropped      = "a page of a copy is dropped, since the one before it is read again"
	healedLate       = "a resync is complete that was replaced"
	markRefused      = "a mark that goes back is refused"
	orderIgnored     = "an order behind a fence is ignored"

	putAgain        = "a put may have written a row by an attempt that was not answered"
	letterBehind    = "a change is stored behind a dead letter of its item"
	letterHealed    = "a change behind a dead letter is written, since it makes its rows true"
	lettersTogether = "the dead letters above a put are applied as one write"
	lettersApart    = "dead letters are applied one by one over a put that was skipped"
	lettersUnlike   = "dead letters stay, since the reading is none of the states that they change"
	lettersMixed    = "dead letters stay, since the put was skipped in some of the rows"
	letterAgain     = "a dead letter is refused again"
	letterKept      = "a dead letter that was applied is not dropped, and is tried again"

	workerSkipped = "a write of a worker is refused by its guard"
	swapRefused   = "a replacement of an order is refused, since another one came first"
	orderClosed   = "an order is closed in the log"
)

// branches are the names of those that usual histories take.
var branches = []string{
	outcomeStored, outcomeLost, packedFollows, packedAgain, packedDropped, lateRefused, notInChain, leaderAsked,
	oldSnapshot, wentBack, trimmedUnder, claimLost,
	ownerReplaced, silentOwner, lateSkipped, writeSkipped, partRewound, resyncRewound, becameUnread, waitsListing,
	waitsApplied, beginWaited, floorRaised, firstAboveFloor, beforeLife, gapStored, gapExcused, gapGrew, gapBetween,
	parentsForgotten, fenceRefuses, fenceUndone,
	lied, readOn, readAgain, lastRecordHeld, lastRecordGone, endIsPosition, readToEnd, listingFails, shardReopened,
	waitRefused, readerMissing, endRefuted, endWithdrawn,
	copyCanceled, copyReplaced, mappingCopied, pageDropped, healedLate, markRefused, orderIgnored,
}

// letterBranches are the names of those that only histories with dead letters take.
var letterBranches = []string{
	putAgain, letterBehind, letterHealed, lettersTogether, lettersApart, lettersUnlike, lettersMixed, letterAgain,
	letterKept,
}

// workerBranches are the names of those that only histories with workers take.
var workerBranches = []string{workerSkipped, swapRefused, orderClosed}

// reached notes that a history takes a branch.
func (w *World) reached(branch string) { w.o.counted.Reached(branch) }

// reachedIf notes that a history takes a branch if something is so, and reports that.
func (w *World) reachedIf(is bool, branch string) bool {
	if is {
		w.reached(branch)
	}
	return is
}
