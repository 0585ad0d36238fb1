// Package prove shows that a mapping keeps items apart, for all items that can exist, and refuses a mapping for which
// it cannot show that. It gives every row its class, and derives what a change needs: old images, every version or
// only the last.
//
// The proofs are about shapes: supersets of the texts that a template can give, with the parts of the primary key that
// such a text determines (package tmpl). They may refuse a mapping that is right for the author's data, but they
// never accept one that is wrong. Each covers all tables that share a target.
//
//	#  what is shown                                    function                 test
//	1  the row's key determines the whole primary key   proveRowDeterminesKey    TestWorkedExamplesHaveTheirClasses
//	2  tables of one target declare a family alike      proveFamiliesAgree       TestTwoTablesOnOneTargetMustNotShareRows
//	3  archived items have a family of their own        proveArchiveAlone        TestTwoTablesMayNotArchiveIntoOneFamily
//	4  no two rules, indexes or tables write one cell   proveRowsOrCellsDiffer   TestRowsOfSeveralTablesAreNeverExclusive
//	5  rows that can be equal have one kind of guard    proveOneGuard            TestRowsThatMayBeTheSameHaveOneGuard
//	6  rows a removal deletes have ordered changes      proveRemovalOrder        TestRemovalOfARowWantsOneOrder
//	7  a cell in a shared row determines its item       proveCellDeterminesItem  TestMappingsThatWouldMixItemsAreRefused
//	8  a column of one entry is no other item's column  proveColumnHasOneItem    TestMappingsThatWouldMixItemsAreRefused
//	9  two entries do not write one column of one item  proveCellsOfItemDiffer   TestWrongMappingsSayWhatToDo
//
// TestWhatCompilesKeepsItemsApart draws mappings that are made to go wrong, and checks all of them together.
//
// Files, from the top down:
//
//	prove.go     all proofs in their order, and the class that follows
//	families.go  proofs 2 and 3
//	removal.go   proof 6
//	rows.go      proofs 1, 4 and 5
//	cells.go     proofs 7, 8 and 9
//	images.go    what a change needs: old images, every version
//	site.go      a row plan under proof, and the parts of the primary key that templates do not determine
package prove
