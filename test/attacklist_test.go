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
	{number: 3, what: "repair deletes neighbours' cells",
		tests: []string{"transform.TestResyncOfACorrectTableChangesNothing"},
	},
	{number: 4, what: "a write outlives its deadline and its sender",
		tests: []string{"test.TestWriteOfADeadOwnerArrivesAfterADelete", "sink/bigtable.TestLatePutLosesToDelete"},
	},
	{number: 5, what: "a hidden retry lands late",
		tests: []string{"sink/bigtable.TestLatePutLosesToLaterPut", "sink/bigtable.TestCallWithALostReplyIsSentAgain"},
	},
	{number: 6, what: "a gap that insert-if-absent does not heal",
		tests: []string{"pipeline.TestGapIsHealedByAResyncOfTheTable", "transform.TestResyncHealsLostChanges"},
	},
	{number: 7, what: "a wrong clock decides versions",
		tests: []string{"test.TestServiceClockIsNotOurs"},
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
	// There are no partitions: a table has one log with one writer (ADR 19). An item still moves between shards.
	{number: 12, what: "an item changes partition",
		tests: []string{
			"queue.TestSecondWriterIsRefusedAndStops",
			"checkpoint.TestPageThatDoesNotFollowIsRefused",
			"pipeline.TestSplitWhileLagging",
		},
	},
	{number: 13, what: "a dead letter leaves ghosts",
		tests: []string{
			"transform.TestALetterHealsWithTheNextChange",
			"test.TestDeadLetterIsRetriedBesideTheDaemon",
			"pipeline.TestChangesBeforeADeadLetterAreNotBehindIt",
			"transform.TestLostSecondMoveLeavesNoStaleRow", // class D: healed by a resync
			"transform.TestResyncHealsLostChanges",
			"test.TestRetryRefusesADifferenceFromWhatWasNeverApplied",
		},
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
			"checkpoint.TestSinkThatBeganLaterOrWasRetiredDoesNotDiffer",
			"test.TestRetiredTableLeavesNothingButTheApplicationsRows",
		},
	},
	{number: 17, what: "an empty page is taken for idleness",
		tests: []string{"test.TestEmptyPagesAreNotTheEnd", "pipeline.TestEmptyPagesBeforeARecordAreNotIdleness"},
	},
	{number: 18, what: "a verifier that knows versions",
		tests: []string{
			"verify.TestEveryKindOfDifferenceIsFound",
			"verify.TestOldVersionUnderTheNewestIsNotSeen",
			"verify.TestEveryKindOfDamageIsACandidateWithItsItem",
			"verify.TestItemThatNeverRestsIsUnproven",
			"verify/continuous.TestEveryDifferenceIsFoundInACycleAndCleared",
			"test.TestPlantedDifferencesUnderWriters",
		},
	},
	{number: 19, what: "a repair write without a version", tests: []string{"verify.TestDamageIsRepairedAndSettlesEqual"}},
	{number: 20, what: "archive objects cut by time",
		tests: []string{
			"sink/archive/ledger.TestEachEventIsInOneObject",
			"pipeline/archiving.TestOwnerCrashesAtEachStep",
			"pipeline/archiving.TestFrozenOwnerAddsNothing",
			"pipeline/archiving.TestStreamIsLost",
			"pipeline/archiving.TestStreamGoesBack",
			"test.TestExpiredItemsAreArchivedAndDeletedOnesAreNot",
		},
	},
	{number: 21, what: "a move A, B, A is replayed in between",
		tests: []string{
			"sink/bigtable.TestMovingItemIsAlwaysInARow",
			"test.TestOldTablesAreCopiedUnderKills",
			"test.TestItemsChangeBetweenPageAndPut",
		},
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
	{number: 24, what: "a parked change waits behind snapshot pages",
		tests: []string{
			"pipeline.TestOldTableIsCopiedBesideItsStream",
			"test.TestOldTablesAreCopiedUnderKills",
		},
	},
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
	{number: 30, what: "a key behind a hash cannot be healed", tests: []string{"transform.TestRandomMappingsAreHealed"}},
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
			"test.TestCopyIsBegunByTheNextOwnerAndCanceled",
			"sink/bigtable.TestSecondFirstStartFindsTheRow",
			"pipeline.TestRowThatNamesTheLogOfAFasterStartIsObeyed",
		},
	},
	{number: 36, what: "recover replays old states",
		tests: []string{
			"checkpoint.TestStartAfterALostLogBeginsBelowItsFloor",
			"checkpoint.TestChildOfATrimmedParentBeginsBelowTheFloorOfItsLife",
			"checkpoint.TestHistories",
			"pipeline.TestLostLogIsRecoveredWithEveryChange",
		},
	},
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
	{number: 40, what: "a resync deletes what the mapping keeps of expired items",
		tests: []string{
			"transform.TestWhatMayOutliveItsItem",
			"transform.TestExpiredItemsThatAreKeptSurviveAResync",
			"verify.TestKeptExpiredItemsStay",
			"pipeline.TestExpiredItemsAreKeptWhenAGapIsHealed",
		},
	},
	{number: 41, what: "a gap counts as over although a sink still lacks what it lost",
		tests: []string{
			"checkpoint.TestAcceptedGapDiffersUntilItIsWaivedForEachSink",
			"checkpoint.TestGapIsHealedForTheSinksThatTheResyncNames",
			"checkpoint.TestHistories",
			"pipeline.TestTrimmedMarkIsAGap",
			"pipeline.TestGapIsHealedByAResyncOfTheTable",
			"pipeline.TestArchiveOfAHealedGapStaysNamed",
			"test.TestHealedGapStaysNamedForItsArchive",
			"pipeline/archiving/healing.TestEachDeletionOfAGapIsArchivedOnce",
			"pipeline.TestArchiveOfAGapIsHealedFromExports",
		},
	},
	{number: 42, what: "a ghost of a removed item that no live guard names",
		tests: []string{
			"transform.TestGhostsBehindALostRemovalAreDeleted",
			"verify.TestGhostOfADeadItemIsFoundByItsTombstone",
			"pipeline.TestGapOfEachKindIsHealedForEachClass",
		},
	},
	{number: 43, what: "a key list leaves the old row of an item that moved, or a letter is lost",
		tests: []string{
			"transform.TestLostSecondMoveLeavesNoStaleRow",
			"verify.TestDamageIsRepairedAndSettlesEqual",
			"pipeline/apply.TestResyncClearsADirtyItem",
			"pipeline.TestMovedItemsAreRepairedByTheirKeys",
		},
	},
	{number: 44, what: "a certificate of a moment that was not the cutover's",
		tests: []string{
			"pipeline.TestNothingIsAppliedBehindAFence", "pipeline.TestNothingIsRepairedBehindAFence",
			"checkpoint.TestNothingIsOrderedBehindAFence", "test.TestCutoverIsTakenOverBetweenItsSteps",
			"test.TestVerifySinceComparesOnlyWhatHasChanged",
			"test.TestStaleOwnerWritesNothingBehindTheFence",
			"cmd/replicator/internal/cutover.TestWhatComesBetweenTheComparisonAndTheFence",
			"cmd/replicator/internal/cutover.TestCutoverBehindATrimmedLogComparesAll",
			"cmd/replicator/internal/cutover.TestCutoverNamesWhoElseWritesToTheTarget",
			"cmd/replicator/internal/verifying.TestSinceOverATrimmedLogIsUnproven",
			"cmd/replicator/internal/kept.TestLogThatIsNotTheOneThatWasReadProvesNothing",
		},
	},
	{number: 45, what: "an older build ignores a copy, and its next snapshot drops it",
		tests: []string{"checkpoint.TestBuildOfFormat2RefusesALogWithACopy", "checkpoint.TestHistories"},
	},
	{number: 46, what: "recoveries inflate the lead of versions",
		tests: []string{"pipeline.TestFourRecoveriesKeepTheLeadAtMinutes"},
	},
	{number: 47, what: "two pipelines write to one target",
		tests: []string{
			"pipeline.TestSecondPipelineIntoATargetIsRefused",
			"pipeline.TestOfPipelinesThatBeginAtOnceOneHasTheTarget",
			"sink/bigtable.TestOfPipelinesThatClaimATargetAtOnceOneHasIt",
			"pipeline.TestTargetTakenDuringAnOutageIsNotWritten",
			"sink/bigtable.TestGuardsOfTwoPipelinesInOneTarget",
			"sink/bigtable.TestTargetAdoptedBetweenReadAndWriteIsNotTakenAgain",
			"sink/bigtable.TestFloorOfAnAdoptedTargetBeatsItsGuards",
			"cmd/replicator.TestFlagsOfRunReachThePipeline",
			"cmd/replicator/internal/retiring.TestRetiredTableOfAnotherPipelineIsAdopted",
		},
	},
	{number: 48, what: "an item that was not read is taken for absent",
		tests: []string{
			"source.TestUnprocessedIsNotAbsent",
			"source.TestKeysUnprocessedForGoodAreThrottled",
			"source.TestMalformedBatchProvesNoAbsence",
			"sandbox.TestBatchRepliesWithUnprocessedRepeatedAndMixedItems",
			"pipeline.TestFaultyBatchesHideNoItem",
		},
	},
	{number: 49, what: "archives, histories and other people's data pass for foreign cells",
		tests: []string{
			"verify.TestHistoriesOfRemovedItemsStay",
			"verify.TestFamiliesOutsideOfTheMappingAreNotLookedAt",
			"verify.TestRowsOfAnotherPipelineAreForeignAndNamed",
			"pipeline.TestForeignCellsAreDeletedOnRequest",
		},
	},
	{number: 50, what: "a copy before a lagging removal loses a child for ever",
		tests: []string{
			"pipeline/apply.TestCopyWaitsForALaggingRemovalOfTheWholeRow",
			"pipeline.TestCopyOfAChildWaitsForTheRemovalOfItsRow",
		},
	},
	{number: 51, what: "histories: a guard raised after a read loses a change",
		tests: []string{
			"sink/bigtable.TestGuardThatAChangeMayHaveWrittenIsNeverReplaced",
			"transform.TestResyncHealsBesideTheStream",
			"transform.TestEqualHistoryOfAChangedRowGetsNoVersion",
		},
	},
	{number: 52, what: "readers step back during a resync",
		tests: []string{
			"pipeline/apply.TestProofCoversWhatWasWrittenUntilTheResponse",
			"transform.TestResyncBesideTheStreamIsNeverSeen",
			"pipeline.TestRandomChangesBesideResyncs",
			"pipeline.TestReaderNeverSeesACopiedItemStepBack",
			"checkpoint.TestHistories",
		},
	},
	{number: 53, what: "an incremental export leaves the stale row of a double move",
		tests: []string{
			"transform.TestLostSecondMoveLeavesNoStaleRow",
			"source/export.TestIncrementalExportHasBothImages",
			"test.TestWaitingResyncOutlivesItsOwner",
		},
	},
	{number: 54, what: "an export over a gap resurrects, or is of another table",
		tests: []string{
			"pipeline/resync.TestExportThatTheStreamDoesNotJoinIsRefused",
			"source/export.TestForeignOrUnfinishedExportsAreRefused",
			"checkpoint.TestHistories",
		},
	},
	{number: 55, what: "a resync heals a gap that it did not see",
		tests: []string{
			"checkpoint.TestLaterOrderBeginsTheResyncAgain",
			"checkpoint.TestResyncOrderedAgainUnderItsIdHealsOnlyWhatItNames",
			"checkpoint.TestResyncHealsNoGapThatItDoesNotKnow",
			"checkpoint.TestGapOfAnOlderFormatIsHealedAfterTheUpgrade",
			"pipeline.TestLossOfAnIdleShardIsNotTakenForOneBeforeTheStart",
			"pipeline.TestGapOfEachKindIsHealedForEachClass",
			"pipeline.TestSecondGapInTheMiddleOfAResync",
		},
	},
	{number: 56, what: "an accepted mapping leaves old cells and guards",
		tests: []string{
			"transform.TestMappingChanges",
			"checkpoint.TestSwitchThatWasReplacedChangesNothing",
			"pipeline.TestMappingThatMovesRowsIsNotSwitched",
		},
	},
	{number: 57, what: "a resync dates cells again that were to expire",
		tests: []string{"transform.TestAgedCellsDoNotComeBack", "pipeline.TestResyncOfAnEqualTableWritesNothing"},
		open:  "a virtual year of weekly resyncs",
	},
	{number: 58, what: "a repair never beats newer foreign cells, or never ends",
		tests: []string{
			"verify.TestHotItemIsListedAndNeverHealed",
			"verify.TestItemThatNeverRestsIsUnproven",
			"sink/bigtable.TestResyncOfAHotItemIsSkippedAndSaysUntilWhen",
			"pipeline.TestHotItemDoesNotKeepAResyncOpen",
		},
	},
	{number: 59, what: "a frozen owner's old page resurrects an item whose delete was lost in a gap",
		tests: []string{
			"sink/bigtable.TestPageOfAFrozenProcessIsNotSent",
			"pipeline/resync.TestPageThatIsTooOldIsReadAgain",
			"pipeline/apply.TestFrozenOwnerWritesNoOldItem",
			"pipeline.TestPageFromBeforeALostDeleteResurrectsNothing",
		},
	},
	{number: 60, what: "a copy starves the stream, or floods the letters",
		tests: []string{
			"pipeline/resync.TestReadBudgetIsKept",
			"pipeline/resync.TestNoPageIsReadWhileBigtableIsFarBehind",
			"pipeline/resync.TestRefusalsPauseTheCopyAlone",
			"pipeline.TestItemsThatACopyCannotWriteAreLetters",
			"checkpoint.TestMarksOfLongKeysFit",
			"test.TestCopyIsBegunByTheNextOwnerAndCanceled",
			"pipeline/resync.TestMemoryOfManySegmentsIsBounded",
		},
	},
	{number: 61, what: "eventually consistent reads have no bound",
		tests: []string{
			"source.TestStrongPageCostsTwice",
			"pipeline/resync.TestCopyGoesOnAfterEachKill", // a copy reads strongly only
			"verify/continuous.TestLaggingReadIsNoDifference",
		},
	},
	{number: 62, what: "an item that comes back between two readings, or has a hot neighbour, is judged wrongly",
		tests: []string{
			"verify.TestItemThatComesBackBetweenTwoReadingsIsEqual",
			"verify.TestHotNeighbourKeepsNoItemUnsettled",
			"verify.TestEachPlantedDifferenceIsNamedAloneAndRepaired",
			"test.TestPlantedDifferencesUnderWriters",
		},
	},
	{number: 63, what: "a request in the log waits for a proof that waits for the mark",
		tests: []string{
			"queue.TestRequestsNeverThrowTheWriterIntoDoubt",
			"queue.TestRequestIsDoneAgainUntilItsOutcomeIsStored",
			"queue.TestFullRequestsHoldTheAskerBack",
			"queue.TestLeaderChangesUnderRequests",
			"pipeline.TestOwnerDiesAtEachStepOfARequest",
			"pipeline.TestManyRequestsUnderLoad",
		},
	},
	{number: 64, what: "proven pages are read again for ever",
		tests: []string{
			"pipeline/apply.TestBeatsDoNotMakeAProvenItemOld",
			"pipeline/resync.TestPageThatIsTooOldIsReadAgain",
			"pipeline.TestCopyEndsUnderManyBeats",
		},
	},
	{number: 65, what: "a resync at the guard that it read makes old content newest",
		tests: []string{
			"sink/bigtable.TestResyncOfAHotItemIsSkippedAndSaysUntilWhen",
			"sink/bigtable.TestGuardThatAChangeMayHaveWrittenIsNeverReplaced",
			"pipeline.TestHotItemDoesNotKeepAResyncOpen",
			"pipeline.TestRandomChangesBesideResyncs",
		},
	},
	{number: 66, what: "a lost log of a fenced table is recovered over the application's data",
		tests: []string{
			"pipeline.TestLostLogOfAFencedTableIsNotRecovered", "pipeline.TestFencedRowOverALogWithoutItIsRefused",
			"test.TestLostVolumeOfAFencedTable",
		},
	},
	{number: 67, what: "a deletion by TTL behind the fence, and the comparison never ends",
		tests: []string{"test.TestCutoverIsTakenOverBetweenItsSteps", "test.TestHeartbeatsProveACutover"},
	},
	{number: 68, what: "a recovery that was killed goes on with the old log",
		tests: []string{
			"pipeline.TestOldLogIsNeverReadOnWhileRecovering",
			"pipeline.TestLogThatLostItsStartIsNotStartedAgain",
			"pipeline.TestLostLogIsRecoveredWithEveryChange",
			"pipeline.TestKilledAfterEachStepOfARecovery",
			"test.TestRecoverSaysFirstWhatItDoes",
		},
	},
	{number: 69, what: "changes around the first listing are skipped",
		tests: []string{
			"pipeline.TestChangesAroundTheFirstStartAreRead",
			"pipeline.TestStartBesideABackfill",
			"config.TestStartThatLosesChangesBesideABackfillIsRefused",
			"sandbox.TestRecordTimesAreSkewedAndCut",
			"checkpoint.TestHistories",
		},
	},
	{number: 70, what: "a resync before the letters loses the last copy of an expired item",
		tests: []string{
			"pipeline/apply.TestResyncKeepsTheLastCopyOfAnExpiredItem",
			"pipeline.TestLastCopyOfAnExpiredItemOutlivesResyncs",
		},
	},
	{number: 71, what: "ghosts pass for foreign cells",
		tests: []string{
			"verify.TestColumnsThatDoNotShowTheirItemAreUnproven",
			"verify/report.TestVerdictIsEqualOnlyWithoutAnyDoubt",
			"test.TestPlantedDifferencesUnderWriters",
		},
	},
	{number: 72, what: "a stale reading of the source equals stale rows",
		tests: []string{"test.TestVerifyAndItsDaemonAreKilled"},
	},
	{number: 73, what: "a resync reads whole rows of many items",
		tests: []string{"sink/bigtable.TestHeldRowsReadsOnlyWhatIsAskedFor"},
		open:  "a backfill of 100,000 items in one row",
	},
	{number: 74, what: "the letter of a copy refuses the application's own fix",
		tests: []string{
			"pipeline/apply.TestLetterOfACopyDoesNotRefuseTheFix",
			"pipeline.TestItemsThatACopyCannotWriteAreLetters",
		},
	},
	{number: 75, what: "a guard in the future cannot be repaired",
		tests: []string{
			"sink/bigtable.TestGuardInTheFutureIsReplaced",
			"pipeline/apply.TestGuardInTheFutureIsReplaced",
			"pipeline.TestGuardsInTheFutureAreRepaired",
			"test.TestPlantedDifferencesAreRepaired",
		},
	},
	{number: 76, what: "a late Put brings a dropped letter back",
		tests: []string{"queue.TestDroppedLetterStaysDropped", "pipeline.TestDroppedLetterStaysDroppedAfterAReplay"},
	},
	{number: 77, what: "an outage of NATS takes logs from living owners",
		tests: []string{
			"queue/claiming.TestSilenceCountsOnlyWhileItIsObserved", "test.TestFaultOfNATSChangesNoOwner",
		},
	},
	{number: 78, what: "a retried removal of a whole row wipes what was written after it",
		tests: []string{
			"pipeline.TestRetriedRemovalKeepsWhatWasWrittenAfterIt",
			"pipeline.TestOrderOfRowsThatItemsMoveBetween",
			"transform.TestRemovalOfARowWantsOneOrder",
		},
	},
	{number: 79, what: "a NATS server that is cut off from its cluster keeps all replicas, and every table stands still",
		tests: []string{"queue/conn.TestServerWithoutAnswersIsLeft", "test.TestReplicasUnderFaults"},
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
