// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/userdata"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

// situation is a launch as the cases write it; what is not said is usual.
type situation struct {
	Class        awsv1.EC2NodeClass    `json:"class"`
	Claim        karpenterv1.NodeClaim `json:"claim"`
	Types        []string              `json:"types"`
	CapacityType string                `json:"capacityType"`
	Region       string                `json:"region"`
	DNS          string                `json:"dns"`
	GroupID      string                `json:"groupID"`
	GateOff      bool                  `json:"gateOff"`
}

const usual = `
class:
  metadata: {name: default}
  spec:
    amiFamily: Custom
    metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
  status:
    instanceProfile: profile-1
    securityGroups: [{id: sg-1}, {id: sg-2}]
    subnets: [{id: subnet-1, zone: us-east-1a}]
    amis:
    - id: ami-x86
      name: bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
    - id: ami-arm
      requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]
claim:
  metadata: {name: pool-1, labels: {karpenter.sh/nodepool: pool}}
types: [m5.large]
capacityType: on-demand
region: us-east-1
dns: 10.100.0.10
`

func parse(t testing.TB, text string) *situation {
	t.Helper()
	s := &situation{}
	for _, part := range []string{usual, text} {
		if err := yaml.UnmarshalStrict([]byte(part), s); err != nil {
			t.Fatalf("%v in %s", err, part)
		}
	}
	return s
}

// descriptions are of the types that are used here.
func descriptions(t testing.TB) map[string]ec2.Description {
	t.Helper()
	all, err := ec2.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ec2.Description{}
	for _, d := range all {
		out[d.InstanceType] = d
	}
	return out
}

func (s *situation) want(t testing.TB, known map[string]ec2.Description) *Want {
	t.Helper()
	demand := cloud.Demand(&s.Claim)
	asked := &launch.Want{Labels: demand}
	w := &Want{
		Claim: &s.Claim, Class: &s.Class, CapacityType: s.CapacityType, GroupID: s.GroupID,
		Tenancy: launch.Tenancy(asked), Partition: launch.Partition(asked),
	}
	class := instancetype.NewClass(&s.Class, nil)
	market := &instancetype.Market{Zones: []instancetype.Zone{{Name: "us-east-1a"}}, OnDemand: map[string]model.Price{}, Left: map[string]int64{}}
	for _, r := range s.Class.Status.CapacityReservations {
		market.Left[r.ID] = 5
	}
	for _, name := range s.Types {
		description, ok := known[name]
		if !ok {
			t.Fatalf("%s is not described", name)
		}
		facts := &instancetype.Facts{Description: description, Zones: []string{"us-east-1a"}}
		market.OnDemand[name] = model.Dollar
		it := instancetype.New(facts, class, &instancetype.Cluster{Region: s.Region})
		it.Offerings = instancetype.Offerings(facts, class, market)
		c := launch.Candidate{Type: it}
		for i := range it.Offerings {
			if o := &it.Offerings[i]; o.Available && o.CapacityType() == s.CapacityType {
				c.Offerings = append(c.Offerings, o)
			}
		}
		w.Candidates = append(w.Candidates, c)
	}
	return w
}

// controlPlane is EKS with one cluster, whose Services have the addresses.
type controlPlane struct {
	client.EKS
	cidr string
}

func (c *controlPlane) DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	return &eks.DescribeClusterOutput{Cluster: &ekstypes.Cluster{
		KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigResponse{ServiceIpv4Cidr: aws.String(c.cidr)},
	}}, nil
}

func (s *situation) config(ec2 EC2, plane *controlPlane) Config {
	clk := clock.RealClock{}
	return Config{
		EC2: ec2, Clock: clk, Metrics: NewMetrics(prometheus.NewRegistry()), Region: s.Region, ReservedCapacity: !s.GateOff,
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://api.example.com", CABundle: "Y2E=", DNS: s.DNS},
		CIDR:    NewServiceCIDR(plane, "prod", clk).Get,
	}
}

// show prints what a draft asks for under the fields: their values without what
// is empty, user data as text. "Tags" stands for those of the template itself.
func show(t testing.TB, d *draft, fields []string) string {
	t.Helper()
	text, err := json.Marshal(d.input.LaunchTemplateData)
	if err != nil {
		t.Fatal(err)
	}
	var data map[string]any
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	if encoded, ok := data["UserData"].(string); ok {
		plain, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		data["UserData"] = string(plain)
	}
	if text, err = json.Marshal(d.input.TagSpecifications); err != nil {
		t.Fatal(err)
	}
	var tags any
	if err := json.Unmarshal(text, &tags); err != nil {
		t.Fatal(err)
	}
	data["Tags"] = tags
	for field := range data {
		if !slices.Contains(fields, field) {
			delete(data, field)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	pruned, _ := prune(data)
	out, err := yaml.Marshal(pruned)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n") + "\n"
}

// prune drops what is null, "" or has nothing in it.
func prune(v any) (out any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value, ok := prune(value); ok {
				v[key] = value
			} else {
				delete(v, key)
			}
		}
		return v, len(v) > 0
	case []any:
		for i := range v {
			v[i], _ = prune(v[i])
		}
		return v, len(v) > 0
	case string:
		return v, v != ""
	}
	return v, v != nil
}
