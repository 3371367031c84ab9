// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"errors"
	"fmt"
	"strings"
)

// windows is PowerShell: what the user wants first, then the image's own script.
func windows(m *Machine, s *settings) (Data, error) {
	flags, err := s.flags()
	if err = errors.Join(err, plainCluster(m.Cluster), plain("clusterDNS", s.dns())); err != nil {
		return Data{}, err
	}
	var out strings.Builder
	out.WriteString("<powershell>\n")
	if m.Custom != "" {
		out.WriteString(m.Custom + "\n")
	}
	out.WriteString(`[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"` + "\n")
	fmt.Fprintf(&out, "& $EKSBootstrapScriptFile -EKSClusterName '%s' -APIServerEndpoint '%s' -Base64ClusterCA '%s' -KubeletExtraArgs '%s'",
		m.Cluster.Name, m.Cluster.Endpoint, m.Cluster.CABundle, strings.Join(flags, " "))
	if dns := s.dns(); dns != "" {
		fmt.Fprintf(&out, " -DNSClusterIP '%s'", dns)
	}
	out.WriteString("\n</powershell>")
	return Data{Text: out.String()}, nil
}
