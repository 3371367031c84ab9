// SPDX-License-Identifier: Apache-2.0

package nomination

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// since is the first Kubernetes release in which components other than the
// scheduler can set a nomination, and binding clears it.
const since = "1.35"

// Supported reports whether the cluster is new enough, and which release it is.
func Supported(server discovery.ServerVersionInterface) (ok bool, release string, err error) {
	info, err := server.ServerVersion()
	if err != nil {
		return false, "", fmt.Errorf("ask the API server for its version: %w", err)
	}
	have, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, "", fmt.Errorf("version %q of the API server: %w", info.GitVersion, err)
	}
	return have.AtLeast(version.MustParseGeneric(since)), info.GitVersion, nil
}
