// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
)

// MaxBytes is how much user data EC2 takes, before it is encoded.
const MaxBytes = 16384

// Cluster is what an instance must know to join.
type Cluster struct {
	Name     string
	Endpoint string // URL of the API server
	CABundle string // base64 of the PEM by which nodes trust it
	CIDR     string // of Services; only AL2023 needs it
	DNS      string // address of the cluster's DNS, for kubelets without a setting; "" = unknown
}

// Machine is what user data is made of. Nothing of it is changed.
type Machine struct {
	Family       awsv1.AMIFamily
	Custom       string // the user's part; "" = none
	Cluster      *Cluster
	CapacityType string
	Labels       map[string]string // of the NodeClaim; those a kubelet may not set are left out
	Taints       []corev1.Taint    // of the NodeClaim, startup taints last

	Kubelet awsv1.KubeletConfiguration
	// MaxPods, KubeReserved and SystemReserved are the fields of these names in
	// Kubelet, with expressions evaluated. If nothing is reserved, the image
	// decides.
	MaxPods        int64
	KubeReserved   corev1.ResourceList
	SystemReserved corev1.ResourceList

	RAID0   bool   // local disks become one
	Version string // of Bottlerocket, see BottlerocketVersion; "" = unknown
}

// Data is user data.
type Data struct {
	Text string
	// Dropped names what of the custom part is left out, as it is nothing that
	// Karpenter knows how to deliver. Sorted.
	Dropped []string
}

// Encoded returns the text as EC2 wants it.
func (d Data) Encoded() string { return base64.StdEncoding.EncodeToString([]byte(d.Text)) }

// Render writes the machine's user data. It fails if the custom part has a
// format that the family does not read, or if a setting cannot be passed to the
// kubelet.
func Render(m *Machine) (Data, error) {
	if m.Family == awsv1.AMIFamilyCustom {
		return Data{Text: m.Custom}, nil
	}
	render := map[awsv1.AMIFamily]func(*Machine, *settings) (Data, error){
		awsv1.AMIFamilyAL2:          al2,
		awsv1.AMIFamilyAL2023:       al2023,
		awsv1.AMIFamilyBottlerocket: bottlerocket,
		awsv1.AMIFamilyWindows2019:  windows,
		awsv1.AMIFamilyWindows2022:  windows,
		awsv1.AMIFamilyWindows2025:  windows,
	}[m.Family]
	if render == nil {
		return Data{}, fmt.Errorf("user data: AMI family %q is unknown", m.Family)
	}
	s, err := newSettings(m)
	if err != nil {
		return Data{}, fmt.Errorf("user data: %w", err)
	}
	data, err := render(m, s)
	if err != nil {
		return Data{}, fmt.Errorf("user data of AMI family %s: %w", m.Family, err)
	}
	return data, nil
}
