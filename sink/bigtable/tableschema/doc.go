// Package tableschema compares the tables of a Bigtable instance with those that a pipeline needs, and makes the two
// equal.
//
// Files, from the top down:
//
//	diff.go    differences between the tables and the wanted ones, and their removal
//	terraform.go  the wanted tables as resources of Terraform
//	tables.go  the wanted tables
package tableschema
