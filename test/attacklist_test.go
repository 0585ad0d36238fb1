package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// attack is a history that ended wrong in some design, and what keeps it from coming back.
type attack struct {
	number int
	what   string
	tests  string // package.Test, blank separated
	open   string // what no test shows yet, and why
}

var attacks = []attack{
	{1, "a claim on a log that was trimmed meanwhile reads it all again", "queue.TestPausedWriterStoresNothingAfterRivalTrimmed checkpoint.TestStaleWriterOnARolledBackLogStoresNothing", ""},
	{2, "trimming eats the state of a quiet table", "queue.TestQuietTableKeepsItsStateThroughTrimming", ""},
	{3, "repair deletes neighbours' cells", "", "needs resync"},
	{4, "a write outlives its deadline and its sender", "test.TestWriteOfADeadOwnerArrivesAfterADelete sink/bigtable.TestLatePutLosesToDelete", ""},
	{5, "a hidden retry lands late", "sink/bigtable.TestLatePutLosesToLaterPut sink/bigtable.TestCallWithALostReplyIsSentAgain", ""},
	{6, "a gap that insert-if-absent does not heal", "", "needs resync"},
	{7, "a wrong clock decides versions", "test.TestServiceClockIsNotOurs", "snapshots need resync"},
	{8, "versions restart lower in a new life", "test.TestBurstBeforeANewStreamHidesNothing test.TestExitCodesTellWhoseTurnItIs pipeline.TestLostLogVolumeIsRefused pipeline.TestBurstAheadOfItsLeadWaitsForBigtable", ""},
	{9, "a child is read while its parent's page is still in hand", "checkpoint.TestMissingParentHoldsItsChild pipeline.TestParentTrimmedBeforeItsChildIsSeen source.TestParentTrimmedBeforeItsChildIsRead source.TestTrimmedShardExistsWhileItIsKnown", ""},
	{10, "a late put into a cell with a mapped time", "sink/bigtable.TestLateV5AfterV9InTheSameMappedCell", ""},
	{11, "a first start at latest, killed", "test.TestFirstStartAtLatestIsDecidedOnce source.TestLatestIsNeverSent pipeline.TestOutageBeforeTheFirstRecordIsAGap", ""},
	{12, "an item changes partition", "", "one log per table so far"},
	{13, "a dead letter leaves ghosts", "transform.TestALetterHealsWithTheNextChange test.TestDeadLetterIsRetriedBesideTheDaemon " +
		"pipeline.TestChangesBeforeADeadLetterAreNotBehindIt", "class D heals by resync"},
	{14, "the old owner goes on", "queue.TestSecondWriterIsRefusedAndStops pipeline.TestSecondOwnerStandsByAndTakesOver", ""},
	{15, "ours? answered from memory", "queue.TestLostAcknowledgementIsResolvedFromTheLog queue.TestLateAcknowledgementIsNoAcknowledgement", ""},
	{16, "trimming stops for good", "queue.TestReplayWindowIsKeptAndYields queue.TestSnapshotInParts queue.TestFullLogPausesAndRecovers " +
		"queue.TestStalledLogIsTrimmedAlthoughItsSnapshotLiesBelowTheFirstMark pipeline.TestLongStallLeavesRoomForTheMarks", "retiring a sink by command"},
	{17, "an empty page is taken for idleness", "test.TestEmptyPagesAreNotTheEnd pipeline.TestEmptyPagesBeforeARecordAreNotIdleness", ""},
	{18, "a verifier that knows versions", "verify.TestEveryKindOfDifferenceIsFound verify.TestOldVersionUnderTheNewestIsNotSeen", "comparing while it is written"},
	{19, "a repair write without a version", "", "needs repair"},
	{20, "archive objects cut by time", "", "files only so far: sink/archive.TestReplayWritesTheSameBytes"},
	{21, "A, B, A replayed in between", "sink/bigtable.TestMovingItemIsAlwaysInARow", "whole program with moves between rows"},
	{22, "a delete removes what the same change sets", "sink/bigtable.TestNoDeleteRemovesWhatItsChangeSets transform.TestRandomMappingsEndAtTheProjection", ""},
	{23, "a million tombstones in a row", "sink/bigtable.TestGuardsAreExactForAnyBytes", "100,000 items in one row"},
	{24, "parked behind snapshot pages", "", "needs backfill"},
	{25, "a mapping edit replays old images", "test.TestEditedMappingIsRefused", ""},
	{26, "one row that is transient for ever", "pipeline.TestRowThatIsNeverTakenIsParkedBeforeRecordsAreLost", ""},
	{27, "a page larger than a message", "queue.TestPageLargerThanAFrameIsSplit queue.TestRecordLargerThanAFrameGoesAlone", ""},
	{28, "a log that lost its tail hands numbers out again", "queue.TestRestoredStoreFilledToTheSameNumber queue.TestLostTailTakesItsStateWithIt", ""},
	{29, "coalesced moves leave ghosts", "transform.TestCoalescedMovesLeaveNoGhost", ""},
	{30, "a key behind a hash cannot be healed", "", "needs resync"},
	{31, "Bigtable away stops reading", "pipeline.TestBigtableAwayThenPartialFailures test.TestSignalEndsInTimeWithoutBigtable", ""},
	{32, "siblings in one column", "transform.TestSiblingsInOneColumnSurviveEachOther sink/bigtable.TestSiblingsInTheSameColumnSurvive", ""},
	{33, "a late delete with mapped times", "transform.TestLateWriteWithMappedTimesDestroysNothing", ""},
	{34, "two items share a guard", "sink/bigtable.TestTwoItemsInOneRow transform.TestRowsOfSeveralTablesAreNeverExclusive transform.TestRowFromANonKeyAttributeIsNotExclusive", ""},
	{35, "a first start between two stores", "test.TestTwoInstancesRaceOnAFirstStart test.TestKilledAtAnyMomentLosesNothing sink/bigtable.TestSecondFirstStartFindsTheRow " +
		"pipeline.TestRowThatNamesTheLogOfAFasterStartIsObeyed", ""},
	{36, "recover replays old states", "", "needs recover"},
	{37, "marks and snapshots feed themselves", "test.TestIdleTableWritesBeatsOnly", ""},
	{38, "a wrong local clock opens or shuts the tombstones' gate", "test.TestServiceClockIsNotOurs sink/bigtable.TestChangeOlderThanItsTombstoneIsRefused pipeline.TestManyTooOldChangesHaltTheTable", ""},
	{39, "a stray publish into the log", "queue.TestStrayPublishFoldsAsNothing pipeline.TestForeignMessagesFoldAsNothing", ""},
	{41, "a gap counts as over although a sink still lacks what it lost", "checkpoint.TestAcceptedGapDiffersUntilItIsWaivedForEachSink pipeline.TestTrimmedMarkIsAGap", "healing needs resync"},
	{47, "two pipelines write to one target", "pipeline.TestSecondPipelineIntoATargetIsRefused pipeline.TestOfPipelinesThatBeginAtOnceOneHasTheTarget sink/bigtable.TestOfPipelinesThatClaimATargetAtOnceOneHasIt " +
		"pipeline.TestTargetTakenDuringAnOutageIsNotWritten", "adopting a target"},
	{78, "a retried removal of a whole row wipes what was written after it", "pipeline.TestRetriedRemovalKeepsWhatWasWrittenAfterIt pipeline.TestOrderOfRowsThatItemsMoveBetween transform.TestRemovalOfARowWantsOneOrder", ""},
}

// TestAttackListNamesRealTests keeps the list true: each attack has tests that exist, or says what is missing.
func TestAttackListNamesRealTests(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	known := map[string]bool{}
	for _, dir := range []string{"queue", "pipeline", "source", "sink/bigtable", "sink/archive", "transform", "verify", "checkpoint", "test"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range function.FindAllStringSubmatch(string(text), -1) {
				known[dir+"."+name[1]] = true
			}
		}
	}
	for i, a := range attacks {
		if i > 0 && a.number <= attacks[i-1].number {
			t.Errorf("attack %d stands behind attack %d", a.number, attacks[i-1].number)
		}
		if a.tests == "" && a.open == "" {
			t.Errorf("attack %d (%s) has neither tests nor a reason", a.number, a.what)
		}
		for _, name := range strings.Fields(a.tests) {
			if !known[name] {
				t.Errorf("attack %d (%s): there is no %s", a.number, a.what, name)
			}
		}
	}
}
