// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"fmt"
	"strings"
)

// furnish puts into a new account what an EKS user has in it.
func (a *AWS) furnish() {
	cluster := a.config.Cluster
	discovery := []string{"karpenter.sh/discovery", cluster, "alpha.eksctl.io/cluster-name", cluster}
	a.vpc = a.id("vpc")
	for i := range 3 {
		// The numbers of the zones' IDs are not those of their letters, as in
		// most accounts.
		a.zones = append(a.zones, zone{a.config.Region + string(rune('a'+i)), fmt.Sprintf("%s-az%d", regionCode(a.config.Region), (i+1)%3+1)})
	}
	for i, z := range a.zones {
		suffix := strings.ToUpper(strings.ReplaceAll(z.name, "-", ""))
		public := append([]string{"Name", "eksctl-" + cluster + "-cluster/SubnetPublic" + suffix, "kubernetes.io/role/elb", "1"}, discovery...)
		private := append([]string{"Name", "eksctl-" + cluster + "-cluster/SubnetPrivate" + suffix, "kubernetes.io/role/internal-elb", "1"}, discovery...)
		id := a.addSubnet(a.vpc, z.name, fmt.Sprintf("192.168.%d.0/19", 32*i), public)
		*a.subnet(id).MapPublicIpOnLaunch = true
		a.addSubnet(a.vpc, z.name, fmt.Sprintf("192.168.%d.0/19", 32*(i+3)), private)
	}
	a.addGroup(a.vpc, "default", nil)
	a.addGroup(a.vpc, "eks-cluster-sg-"+cluster, append([]string{"aws:eks:cluster-name", cluster, "kubernetes.io/cluster/" + cluster, "owned"}, discovery...))
	a.addGroup(a.vpc, "eksctl-"+cluster+"-nodes", append([]string{"Name", "eksctl-" + cluster + "/nodes"}, discovery...))
	a.addRole("KarpenterNodeRole-"+cluster, "/")
	a.addQueue(cluster)
	a.furnishCluster()
}

// regionCode is the short name of a region in its zones' IDs: usw2 for
// us-west-2.
func regionCode(region string) string {
	parts := strings.Split(region, "-")
	if len(parts) < 3 {
		return region
	}
	out := parts[0]
	for _, part := range parts[1 : len(parts)-1] {
		switch part {
		case "northeast", "southeast", "northwest", "southwest":
			out += part[:1] + part[5:6]
		default:
			out += part[:1]
		}
	}
	return out + parts[len(parts)-1]
}
