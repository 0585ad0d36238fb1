// Package distributed has what a comparison on the machines of a distributed engine leaves in a
// folder of a bucket: the plan, and the findings of each range of the target's rows.
//
//	plan.json             what is compared: `replicator verify --workers` writes it, once
//	ranges/000012.jsonl.gz  findings of a range: the worker that has compared it writes them, once
//
// Nothing else is the result of a comparison: not what an engine reports of its job. Workers may
// write the same range twice, in any order, and long after; the first writing stays.
//
// Files, from the top down:
//
//	plan.go    the plan
//	folder.go  the folder with plan and findings
package distributed
