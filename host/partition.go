package host

import "strings"

// partitions are AWS's partitions by the begin of their regions' names, but for its own "aws".
//
// Source: https://docs.aws.amazon.com/general/latest/gr/aws-arns-and-namespaces.html
var partitions = []struct{ region, partition string }{
	{"cn-", "aws-cn"}, {"us-gov-", "aws-us-gov"}, {"eusc-", "aws-eusc"}, {"us-isob-", "aws-iso-b"},
	{"us-isof-", "aws-iso-f"},
	{"eu-isoe-", "aws-iso-e"}, {"us-iso-", "aws-iso"},
}

// Partition returns the partition of an AWS region, which stands in the ARNs of its resources.
func Partition(region string) string {
	for _, p := range partitions {
		if strings.HasPrefix(region, p.region) {
			return p.partition
		}
	}
	return "aws"
}
