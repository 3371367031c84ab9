// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"slices"
	"strconv"
	"strings"

	awsv1 "karpenter/api/aws/v1"
)

// BottlerocketVersion returns the release of Bottlerocket that nodes of the
// class boot, as far as its selectors or the names of its images tell: such as
// "v1.46.0", "latest", or "" when nothing does.
func BottlerocketVersion(class *awsv1.EC2NodeClass) string {
	if alias, ok := class.Alias(); ok {
		return alias.Version
	}
	for _, term := range class.Spec.AMISelectorTerms {
		if v := versionIn(term.Name); v != "" {
			return v
		}
	}
	for _, term := range class.Spec.AMISelectorTerms {
		for _, ami := range class.Status.AMIs {
			if v := versionIn(ami.Name); v != "" && ami.ID == term.ID {
				return v
			}
		}
	}
	for _, ami := range class.Status.AMIs {
		if v := versionIn(ami.Name); v != "" && strings.Contains(ami.Name, "bottlerocket") {
			return v
		}
	}
	return ""
}

// versionIn finds the release in a name such as
// bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a, or returns "".
func versionIn(name string) string {
	for token := range strings.SplitSeq(name, "-") {
		if strings.HasPrefix(token, "v") && strings.Contains(token, ".") {
			return token
		}
	}
	return ""
}

// bindsByItself reports whether the release is known to bring its own list of
// directories for local disks, as those from 1.46.0 on do.
func bindsByItself(version string) bool {
	if version == awsv1.AliasVersionLatest {
		return true
	}
	var numbers []int
	for text := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return false
		}
		numbers = append(numbers, n)
	}
	return len(numbers) == 3 && slices.Compare(numbers, []int{1, 46, 0}) >= 0
}
