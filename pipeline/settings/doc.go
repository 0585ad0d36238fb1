// Package settings asks Bigtable and the archive's bucket for the settings that the tables rely on, and lets package
// protocol judge them.
//
// Files, from the top down:
//
//	watch.go   looks at them, each once for all tables of a process
//	judged.go  from what the clients answer to what is judged; check and run share it
//	gate.go    what holds back the writes to Bigtable while a setting makes them unsafe
package settings
