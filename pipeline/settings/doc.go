// Package settings reads the settings that the tables rely on from Bigtable and the archive's
// bucket, and lets package protocol judge them.
//
// Files, from the top down:
//
//	watch.go   reads the settings, each once for all tables of a process
//	judged.go  turns the answers of the clients into the input of the judges; check and run share it
//	gate.go    holds back the writes to Bigtable while a setting makes them unsafe
package settings
