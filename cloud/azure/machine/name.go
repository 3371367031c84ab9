// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"hash/fnv"
	"strings"
)

const (
	longestName = 34
	hashLength  = 6
)

// Name returns the name of the machine of a NodeClaim: its name, shortened to
// what AKS accepts. The random end of the claim's name stays, and what is cut off
// is replaced by a hash of it.
func Name(claim string) (string, error) {
	if len(claim) <= longestName {
		return claim, nil
	}
	dash := strings.LastIndex(claim, "-")
	if dash < 0 {
		return "", fmt.Errorf("NodeClaim name %q is longer than %d characters and has no dash, so it cannot be shortened to a machine name", claim, longestName)
	}
	prefix, suffix := claim[:dash], claim[dash:]
	kept := longestName - len(suffix) - hashLength
	if kept < 0 || kept > len(prefix) {
		return "", fmt.Errorf("NodeClaim name %q ends with more than %d characters after the last dash, so it cannot be shortened to a machine name", claim, longestName-hashLength-1)
	}
	return prefix[:kept] + shortHash(prefix[kept:]) + suffix, nil
}

// shortHash returns the last six digits of the text's FNV-1 hash in base 36.
func shortHash(text string) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	h := fnv.New64()
	_, _ = h.Write([]byte(text)) // never fails
	n := h.Sum64()
	out := make([]byte, hashLength)
	for i := hashLength - 1; i >= 0; i-- {
		out[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	return string(out)
}

// NameOfVM returns the name of the machine of the agent pool that owns a virtual
// machine. It is not ok if no machine of the pool does.
func NameOfVM(pool, vm string) (name string, ok bool) {
	name, prefixed := strings.CutPrefix(vm, "aks-"+pool+"-")
	name, suffixed := strings.CutSuffix(name, "-vm")
	dash := strings.LastIndex(name, "-")
	if !prefixed || !suffixed || dash <= 0 {
		return "", false
	}
	return name[:dash], true
}

const providerPrefix = "azure://"

// ProviderID returns the provider ID of a virtual machine by its ARM ID, with the
// resource group in lower case, as Azure's cloud provider writes it.
func ProviderID(resourceID string) string {
	parts := strings.Split(resourceID, "/")
	for i := range len(parts) - 1 {
		if strings.EqualFold(parts[i], "resourceGroups") {
			parts[i+1] = strings.ToLower(parts[i+1])
		}
	}
	return providerPrefix + strings.Join(parts, "/")
}

// VMName returns the name of the virtual machine of a provider ID. It is not ok if
// the ID is not of a virtual machine of Azure.
func VMName(providerID string) (name string, ok bool) {
	id, prefixed := strings.CutPrefix(providerID, providerPrefix)
	parts := strings.Split(id, "/")
	if !prefixed || len(parts) != 9 || !strings.EqualFold(parts[7], "virtualMachines") || parts[8] == "" {
		return "", false
	}
	return parts[8], true
}
