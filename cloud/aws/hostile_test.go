// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	"karpenter/api/hostile"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/nodeclass"
	"karpenter/cloud/aws/profile"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/aws/userdata"
)

// TestHostileClasses has EC2NodeClasses with fields that no one would write looked at by their
// controllers, and instances launched and checked for drift by them. Nothing panics or hangs, and
// the class beside them launches as before.
func TestHostileClasses(t *testing.T) {
	var met encounters
	runs := hostile.Runs(t, 5, func(t *testing.T, seed uint64) { withHostileClasses(t, seed, &met) })
	t.Logf("%+v", met)
	if runs >= 5 && min(met.Ready, met.Launched, met.Refused) == 0 {
		t.Errorf("the classes are no test: %+v", met)
	}
}

// encounters counts what became of classes.
type encounters struct{ Classes, Ready, Launched, Refused int }

func withHostileClasses(t *testing.T, seed uint64, met *encounters) {
	h := hostile.New(seed, "al2023@latest", "bottlerocket@latest", "AL2023", "Bottlerocket", "Custom", "Windows2022", "m5.large", "gp3", "io2", "/dev/xvda", "required", "optional", "RAID0", "cluster",
		"vCPU", "[settings.kubernetes]\nx = 1", "MIME-Version: 1.0\n", "#!/bin/bash", `{"a":`, "Efa", "default", "karpenter.sh/discovery", "kubernetes.io/cluster/cluster", "100%", "1Gi", "memory.available")
	r := newRegion(t, nil)
	reconciler, hash := r.classes(h.IntN(2) == 0), &nodeclass.Hash{Client: r.api, CABundle: "ca"}
	sample := r.getClass()
	for n := range 20 {
		class := sample.DeepCopy()
		class.ObjectMeta.Reset()
		class.Name, class.UID, class.Status = fmt.Sprint("hostile-", n), "", awsv1.EC2NodeClassStatus{}
		if h.IntN(4) == 0 {
			h.Fill(reflect.ValueOf(&class.Spec).Elem(), 0)
		} else {
			h.Change(reflect.ValueOf(&class.Spec).Elem(), 1+h.IntN(3))
		}
		class.Spec.IPPrefixCount = nil // one that exceeds what a subnet has makes the subnet count as used up for every class
		class, ok := hostile.Sent(class)
		if !ok {
			continue
		}
		met.Classes++
		r.try(class, reconciler, hash, met)
	}
	claim := r.claim("good")
	r.launch(claim)
	if reason, err := r.IsDrifted(t.Context(), claim); err != nil || reason != "" {
		t.Errorf("an instance of the class beside them: drifted for %q, %v", reason, err)
	}
}

// classes returns the controller of node classes, as the program has it.
func (r *region) classes(cel bool) *nodeclass.Reconciler {
	r.t.Helper()
	config := r.aws.Config()
	cidr := template.NewServiceCIDR(r.services.EKS, config.Cluster, r.clock)
	c := nodeclass.Config{
		Client: r.api, Clock: r.clock, ClusterName: config.Cluster, ReservedCapacity: true,
		Cluster: instancetype.Cluster{Region: config.Region, MemoryOverhead: 0.075},
		Tell:    func(*awsv1.EC2NodeClass, string, string, string) {},
		AWS: nodeclass.AWS{
			Images:         image.New(image.Config{EC2: r.services.EC2, SSM: r.services.SSM, Clock: r.clock, Refresh: time.Minute, Kubernetes: func() string { return "1.33" }}),
			Subnets:        network.NewSubnets(r.services.EC2, r.clock, time.Minute),
			SecurityGroups: network.NewSecurityGroups(r.services.EC2, r.clock, time.Minute),
			Reservations:   reservation.NewReservations(r.services.EC2, r.clock, r.counts), PlacementGroups: r.groups,
			Profiles: profile.New(profile.Config{IAM: r.services.IAM, Clock: r.clock, Region: config.Region, ClusterName: config.Cluster}),
			Templates: template.New(template.Config{
				EC2: r.services.EC2, Clock: r.clock, Metrics: template.NewMetrics(prometheus.NewRegistry()), Region: config.Region, ReservedCapacity: true,
				Cluster: userdata.Cluster{Name: config.Cluster, Endpoint: config.Endpoint, CABundle: config.CertificateAuthority, DNS: "10.100.0.10"}, CIDR: cidr.Get,
			}),
			Launch: r.services.EC2, Facts: r.catalogue.Facts, CIDR: cidr.Get,
		},
	}
	if cel {
		var err error
		c.Language, err = expression.NewLanguage()
		must(r.t, err)
	}
	return nodeclass.New(c)
}

// try takes a class through its life: it is looked at, launched with, changed, and deleted. Errors are
// what is to be expected.
func (r *region) try(class *awsv1.EC2NodeClass, reconciler *nodeclass.Reconciler, hash *nodeclass.Hash, met *encounters) {
	r.t.Helper()
	ctx, request := r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(class)}
	must(r.t, r.api.Create(ctx, class))
	for range 3 {
		_, _ = hash.Reconcile(ctx, request)
		_, _ = reconciler.Reconcile(ctx, request)
	}
	must(r.t, r.api.Get(ctx, request.NamespacedName, class))
	if conditions.IsTrue(class, v1.ReadyCondition) {
		met.Ready++
	}
	_, _ = r.types(ctx, class)
	ref := *r.pool.Spec.Template.Spec.NodeClassRef
	ref.Name = class.Name
	claim := r.claim("of-" + class.Name)
	claim.Spec.NodeClassRef = &ref
	r.store(claim)
	m, err := r.Create(ctx, claim)
	if err != nil {
		met.Refused++
	} else {
		met.Launched++
		r.record(claim, m)
		r.clock.Step(time.Minute)
		_, _ = r.IsDrifted(ctx, claim)
	}
	must(r.t, r.api.Delete(ctx, class))
	for range 2 {
		_, _ = reconciler.Reconcile(ctx, request)
	}
}
