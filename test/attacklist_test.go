package test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// attack is a sequence of events that broke an earlier design, with the tests that show that it no longer does.
type attack struct {
	number int
	what   string
	tests  []string // package directory, dot, test function
	open   string   // the part that no test covers yet, or the feature that it waits for
}

var attacks = []attack{
	{number: 1, what: "a claim on a log that was trimmed meanwhile reads it all again",
		tests: []string{
			"queue.TestPausedWriterStoresNothingAfterRivalTrimmed",
			"checkpoint.TestStaleWriterOnARolledBackLogStoresNothing",
		},
	},
	{number: 2, what: "trimming eats the state of a quiet table",
		tests: []string{"queue.TestQuietTableKeepsItsStateThroughTrimming"},
	},
	{number: 3, what: "repair deletes neighbours' cells", open: "needs resync"},
	{number: 4, what: "a write outlives its deadline and its sender",
		tests: []string{"test.TestWriteOfADeadOwnerArrivesAfterADelete", "sink/bigtable.TestLatePutLosesToDelete"},
	},
	{number: 5, what: "a hidden retry lands late",
		tests: []string{"sink/bigtable.TestLatePutLosesToLaterPut", "sink/bigtable.TestCallWithALostReplyIsSentAgain"},
	},
	{number: 6, what: "a gap that insert-if-absent does not heal", open: "needs resync"},
	{number: 7, what: "a wrong clock decides versions",
		tests: []string{"test.TestServiceClockIsNotOurs"},
		open:  "snapshots need resync",
	},
	{number: 8, what: "versions restart lower in a new life",
		tests: []string{
			"test.TestBurstBeforeANewStreamHidesNothing",
			"test.TestExitCodesTellWhoseTurnItIs",
			"pipeline.TestLostLogVolumeIsRefused",
			"pipeline.TestBurstAheadOfItsLeadWaitsForBigtable",
		},
	},
	{number: 9, what: "a child is read while its parent's page is still in hand",
		tests: []string{
			"checkpoint.TestMissingParentHoldsItsChild",
			"pipeline.TestParentTrimmedBeforeItsChildIsSeen",
			"source.TestParentTrimmedBeforeItsChildIsRead",
			"source.TestTrimmedShardExistsWhileItIsKnown",
		},
	},
	{number: 10, what: "a late put into a cell with a mapped time",
		tests: []string{"sink/bigtable.TestLateV5AfterV9InTheSameMappedCell"},
	},
	{number: 11, what: "a first start at latest, killed",
		tests: []string{
			"test.TestFirstStartAtLatestIsDecidedOnce",
			"source.TestLatestIsNeverSent",
			"pipeline.TestOutageBeforeTheFirstRecordIsAGap",
		},
	},
	{number: 12, what: "an item changes partition", open: "one log per table so far"},
	{number: 13, what: "a dead letter leaves ghosts",
		tests: []string{
			"transform.TestALetterHealsWithTheNextChange",
			"test.TestDeadLetterIsRetriedBesideTheDaemon",
			"pipeline.TestChangesBeforeADeadLetterAreNotBehindIt",
		},
		open: "rows of class D (by-diff) heal by resync",
	},
	{number: 14, what: "the old owner goes on",
		tests: []string{"queue.TestSecondWriterIsRefusedAndStops", "pipeline.TestSecondOwnerStandsByAndTakesOver"},
	},
	{number: 15, what: "an append whose outcome is unknown is answered from memory",
		tests: []string{
			"queue.TestLostAcknowledgementIsResolvedFromTheLog",
			"queue.TestLateAcknowledgementIsIgnored",
		},
	},
	{number: 16, what: "trimming stops for good",
		tests: []string{
			"queue.TestReplayWindowIsKeptUntilTheLogFillsUp",
			"queue.TestSnapshotInParts",
			"queue.TestFullLogPausesAndRecovers",
			"queue.TestStalledLogIsTrimmedAlthoughItsSnapshotLiesBelowTheFirstMark",
			"pipeline.TestLongStallLeavesRoomForTheMarks",
		},
		open: "retiring a sink by command",
	},
	{number: 17, what: "an empty page is taken for idleness",
		tests: []string{"test.TestEmptyPagesAreNotTheEnd", "pipeline.TestEmptyPagesBeforeARecordAreNotIdleness"},
	},
	{number: 18, what: "a verifier that knows versions",
		tests: []string{"verify.TestEveryKindOfDifferenceIsFound", "verify.TestOldVersionUnderTheNewestIsNotSeen"},
		open:  "comparing while it is written",
	},
	{number: 19, what: "a repair write without a version", open: "needs repair"},
	{number: 20, what: "archive objects cut by time",
		open: "files only so far: sink/archive.TestReplayWritesTheSameBytes",
	},
	{number: 21, what: "a move A, B, A is replayed in between",
		tests: []string{"sink/bigtable.TestMovingItemIsAlwaysInARow"},
		open:  "whole program with moves between rows",
	},
	{number: 22, what: "a delete removes what the same change sets",
		tests: []string{
			"sink/bigtable.TestNoDeleteRemovesWhatItsChangeSets",
			"transform.TestRandomMappingsEndAtTheProjection",
		},
	},
	{number: 23, what: "a million tombstones in a row",
		tests: []string{"sink/bigtable.TestGuardsAreExactForAnyBytes"},
		open:  "100,000 items in one row",
	},
	{number: 24, what: "a parked change waits behind snapshot pages", open: "needs backfill"},
	{number: 25, what: "a mapping edit replays old images", tests: []string{"test.TestEditedMappingIsRefused"}},
	{number: 26, what: "one row that is transient forever",
		tests: []string{"pipeline.TestRowThatIsNeverTakenIsParkedBeforeRecordsAreLost"},
	},
	{number: 27, what: "a page larger than a message",
		tests: []string{"queue/frame.TestPageLargerThanAFrameIsSplit", "queue/frame.TestRecordLargerThanAFrameGoesAlone"},
	},
	{number: 28, what: "a log that lost its tail hands numbers out again",
		tests: []string{"queue.TestRestoredStoreFilledToTheSameNumber", "queue.TestLostTailRollsTheStateBack"},
	},
	{number: 29, what: "coalesced moves leave ghosts", tests: []string{"transform.TestCoalescedMovesLeaveNoGhost"}},
	{number: 30, what: "a key behind a hash cannot be healed", open: "needs resync"},
	{number: 31, what: "Bigtable away stops reading",
		tests: []string{"pipeline.TestBigtableAwayThenPartialFailures", "test.TestSignalEndsInTimeWithoutBigtable"},
	},
	{number: 32, what: "siblings in one column",
		tests: []string{
			"transform.TestSiblingsInOneColumnSurviveEachOther",
			"sink/bigtable.TestSiblingsInTheSameColumnSurvive",
		},
	},
	{number: 33, what: "a late delete with mapped times",
		tests: []string{"transform.TestLateWriteWithMappedTimesDestroysNothing"},
	},
	{number: 34, what: "two items share a guard",
		tests: []string{
			"sink/bigtable.TestTwoItemsInOneRow",
			"transform.TestRowsOfSeveralTablesAreNeverExclusive",
			"transform.TestRowFromANonKeyAttributeIsNotExclusive",
		},
	},
	{number: 35, what: "a first start between two stores",
		tests: []string{
			"test.TestTwoInstancesRaceOnAFirstStart",
			"test.TestKilledAtAnyMomentLosesNothing",
			"sink/bigtable.TestSecondFirstStartFindsTheRow",
			"pipeline.TestRowThatNamesTheLogOfAFasterStartIsObeyed",
		},
	},
	{number: 36, what: "recover replays old states", open: "needs recover"},
	{number: 37, what: "marks and snapshots feed themselves", tests: []string{"test.TestIdleTableWritesBeatsOnly"}},
	{number: 38, what: "a wrong local clock opens or shuts the tombstones' gate",
		tests: []string{
			"test.TestServiceClockIsNotOurs",
			"sink/bigtable.TestChangeOlderThanItsTombstoneIsRefused",
			"pipeline.TestManyTooOldChangesHaltTheTable",
		},
	},
	{number: 39, what: "a stray publish into the log",
		tests: []string{"queue.TestStrayPublishHasNoEffect", "pipeline.TestForeignMessagesFoldAsNothing"},
	},
	{number: 41, what: "a gap counts as over although a sink still lacks what it lost",
		tests: []string{"checkpoint.TestAcceptedGapDiffersUntilItIsWaivedForEachSink", "pipeline.TestTrimmedMarkIsAGap"},
		open:  "healing needs resync",
	},
	{number: 47, what: "two pipelines write to one target",
		tests: []string{
			"pipeline.TestSecondPipelineIntoATargetIsRefused",
			"pipeline.TestOfPipelinesThatBeginAtOnceOneHasTheTarget",
			"sink/bigtable.TestOfPipelinesThatClaimATargetAtOnceOneHasIt",
			"pipeline.TestTargetTakenDuringAnOutageIsNotWritten",
		},
		open: "adopting a target",
	},
	{number: 78, what: "a retried removal of a whole row wipes what was written after it",
		tests: []string{
			"pipeline.TestRetriedRemovalKeepsWhatWasWrittenAfterIt",
			"pipeline.TestOrderOfRowsThatItemsMoveBetween",
			"transform.TestRemovalOfARowWantsOneOrder",
		},
	},
}

// TestAttackListNamesRealTests checks that every test in the list exists, and that an attack without tests says why.
func TestAttackListNamesRealTests(t *testing.T) {
	known := testFunctions(t)
	for i, a := range attacks {
		if i > 0 && a.number <= attacks[i-1].number {
			t.Errorf("attack %d stands behind attack %d", a.number, attacks[i-1].number)
		}
		if len(a.tests) == 0 && a.open == "" {
			t.Errorf("attack %d (%s) has neither tests nor a reason", a.number, a.what)
		}
		for _, name := range a.tests {
			if !known[name] {
				t.Errorf("attack %d (%s): there is no %s", a.number, a.what, name)
			}
		}
	}
}

// testFunction matches the declaration of a test or a fuzz test.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testFunctions returns every test of the project as its package directory, a dot and its name.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, "_test.go") {
			for _, m := range testFunction.FindAllStringSubmatch(read(t, filepath.Join("..", file)), -1) {
				all[path.Dir(file)+"."+m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
