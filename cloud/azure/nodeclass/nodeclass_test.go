// SPDX-License-Identifier: Apache-2.0

package nodeclass_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/nodeclass"
)

const (
	clusterSubnet = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/prod/subnets/nodes"
	managedSubnet = "/subscriptions/s/resourceGroups/MC_group/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
)

// stage is a class and all that its controllers see.
type stage struct {
	t      *testing.T
	api    client.Client
	clock  *clocktesting.FakeClock
	config nodeclass.Config

	served     string // version
	newest     string // version of images
	window     map[string]string
	subnet     error
	set        error // reading the disk encryption set
	conflicts  bool
	asked      int // for conflicts
	subnetGets []string
	events     []string
}

func newStage(t *testing.T, spec v1beta1.AKSNodeClassSpec) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, served: "v1.33.4", newest: "1", clock: clocktesting.NewFakeClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)),
		api: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.AKSNodeClass{}, &v1.NodeClaim{}).Build(),
	}
	s.config = nodeclass.Config{
		Client: s.api, Clock: s.clock, Subnet: clusterSubnet, NodeResourceGroup: "MC_group", NetworkPlugin: "azure", SharedImages: true,
		Event: func(class *v1beta1.AKSNodeClass, eventType, reason, message string) {
			s.events = append(s.events, eventType+" "+reason+" "+message)
		},
		Version: func(context.Context) (string, error) { return s.served, nil },
		Newest: func(_ context.Context, w image.Wanted) ([]v1beta1.NodeImage, error) {
			var out []v1beta1.NodeImage
			for _, d := range w.Definitions() {
				out = append(out, d.Node(d.SharedID("sig", s.newest)))
			}
			return out, nil
		},
		Window:            func(context.Context) (map[string]string, error) { return s.window, nil },
		CheckSubnet:       func(_ context.Context, id string) error { s.subnetGets = append(s.subnetGets, id); return s.subnet },
		DiskEncryptionSet: func(context.Context) error { return s.set },
		DNSConflicts:      func(context.Context) (bool, error) { s.asked++; return s.conflicts, nil },
	}
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}, Spec: spec}
	if err := s.api.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	return s
}

// pass runs the controller once.
func (s *stage) pass() (*v1beta1.AKSNodeClass, time.Duration, error) {
	s.t.Helper()
	r := &nodeclass.Reconciler{Config: s.config}
	result, err := r.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "default"}})
	class := &v1beta1.AKSNodeClass{}
	if got := s.api.Get(s.t.Context(), client.ObjectKey{Name: "default"}, class); client.IgnoreNotFound(got) != nil {
		s.t.Fatal(got)
	}
	return class, result.RequeueAfter, err
}

// change changes the class as a user does.
func (s *stage) change(change func(*v1beta1.AKSNodeClass)) {
	s.t.Helper()
	class := &v1beta1.AKSNodeClass{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		s.t.Fatal(err)
	}
	change(class)
	class.Generation++
	if err := s.api.Update(s.t.Context(), class); err != nil {
		s.t.Fatal(err)
	}
}

func condition(class *v1beta1.AKSNodeClass, name string) string {
	for _, c := range class.Status.Conditions {
		if c.Type == name {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func (s *stage) want(class *v1beta1.AKSNodeClass, name, want string) {
	s.t.Helper()
	if got := condition(class, name); got != want {
		s.t.Errorf("%s is %s, want %s", name, got, want)
	}
}

func versions(class *v1beta1.AKSNodeClass) string {
	var out []string
	for _, i := range class.Status.Images {
		_, rest, _ := strings.Cut(i.ID, "/images/")
		out = append(out, strings.Replace(rest, "/versions/", " ", 1))
	}
	return strings.Join(out, ", ")
}

// TestReady: a plain class becomes ready in one pass, and stays so.
func TestReady(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	class, again, err := s.pass()
	if err != nil || again != 3*time.Minute {
		t.Errorf("again after %s, %v", again, err)
	}
	s.want(class, "Ready", "True Ready")
	if class.Finalizers[0] != v1beta1.TerminationFinalizer || *class.Status.KubernetesVersion != "1.33.4" || *class.Status.LocalDNSState != v1beta1.LocalDNSStateDisabled {
		t.Errorf("class %+v", class)
	}
	if again, _, err := s.pass(); err != nil || again.ResourceVersion != class.ResourceVersion {
		t.Errorf("a second pass changes the class: %v", err)
	}
}

// TestUpgrade covers spec 71/12.
func TestUpgrade(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	closed := s.clock.Now().Add(time.Hour)
	s.window = map[string]string{
		"aksManagedNodeOSUpgradeSchedule-start": closed.Format(time.RFC3339), "aksManagedNodeOSUpgradeSchedule-end": closed.Add(time.Hour).Format(time.RFC3339),
	}
	if _, _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	s.newest = "2"
	class, _, err := s.pass()
	if err != nil || versions(class) != "2204gen2containerd 1, 2204containerd 1, 2204gen2arm64containerd 1" {
		t.Errorf("outside of the window: %s, %v", versions(class), err)
	}
	s.served = "v1.34.1"
	class, _, err = s.pass()
	if err != nil || *class.Status.KubernetesVersion != "1.34.1" || versions(class) != "2404gen2containerd 2, 2404containerd 2, 2404gen2arm64containerd 2" {
		t.Errorf("after the upgrade: %s, %s, %v", *class.Status.KubernetesVersion, versions(class), err)
	}
	s.want(class, "ImagesReady", "True ImagesReady")
	s.served, s.newest = "v1.33.4", "3"
	before := class.ResourceVersion
	if class, _, err = s.pass(); err != nil || class.ResourceVersion != before {
		t.Errorf("a downgrade changes %s, %s: %v", *class.Status.KubernetesVersion, versions(class), err)
	}
	s.clock.Step(90 * time.Minute)
	if class, _, err = s.pass(); err != nil || !strings.HasSuffix(versions(class), " 3") {
		t.Errorf("in the window: %s, %v", versions(class), err)
	}
	// Without images, the upgrade shows.
	s.served = "v1.35.0"
	s.config.Newest = func(context.Context, image.Wanted) ([]v1beta1.NodeImage, error) { return nil, errors.New("boom") }
	if class, _, err = s.pass(); err == nil {
		t.Error("no error")
	}
	s.want(class, "ImagesReady", "False KubernetesUpgrade")
	s.config.Newest = func(context.Context, image.Wanted) ([]v1beta1.NodeImage, error) { return nil, nil }
	if class, _, err = s.pass(); err != nil {
		t.Error(err)
	}
	s.want(class, "ImagesReady", "False ImagesNotFound")
	s.want(class, "Ready", "False UnhealthyDependents")
}

// TestMaintenanceWindow covers spec 71/21: one key of the window is an error, and
// images stay.
func TestMaintenanceWindow(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	if _, _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	s.newest, s.window = "2", map[string]string{"aksManagedNodeOSUpgradeSchedule-start": s.clock.Now().Format(time.RFC3339)}
	class, _, err := s.pass()
	if err == nil || versions(class) != "2204gen2containerd 1, 2204containerd 1, 2204gen2arm64containerd 1" {
		t.Errorf("images %s, %v", versions(class), err)
	}
	s.window = nil
	if class, _, err = s.pass(); err != nil || !strings.HasSuffix(versions(class), " 2") {
		t.Errorf("without a window: %s, %v", versions(class), err)
	}
}

// TestFIPSNeedsSharedImages covers spec 71/19.
func TestFIPSNeedsSharedImages(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	s.config.SharedImages = false
	if _, _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	s.change(func(c *v1beta1.AKSNodeClass) { c.Spec.FIPSMode = new(v1beta1.FIPSModeFIPS) })
	class, _, err := s.pass()
	if err != nil || class.Status.Images != nil {
		t.Errorf("images %s, %v", versions(class), err)
	}
	s.want(class, "ImagesReady", "False SIGRequiredForFIPS")
}

// TestSubnet covers spec 71/13.
func TestSubnet(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	s.subnet = &cloud.NotFoundError{}
	class, again, err := s.pass()
	if err != nil || again > time.Minute || again == 0 {
		t.Errorf("again after %s, %v", again, err)
	}
	s.want(class, "SubnetsReady", "False SubnetNotFound")
	s.subnet = errors.New("boom")
	class, _, err = s.pass()
	if err == nil {
		t.Error("no error")
	}
	s.want(class, "SubnetsReady", "False SubnetUnknownError")
	s.subnet = nil
	for name, c := range map[string]struct {
		cluster, own, want string
	}{
		"own subnet":             {clusterSubnet, strings.Replace(clusterSubnet, "subnets/nodes", "subnets/more", 1), "True SubnetsReady"},
		"own subnet, other case": {clusterSubnet, strings.ToUpper(strings.Replace(clusterSubnet, "subnets/nodes", "subnets/more", 1)), "True SubnetsReady"},
		"another network":        {clusterSubnet, strings.Replace(clusterSubnet, "prod", "test", 1), "False SubnetIDInvalid"},
		"another subscription":   {clusterSubnet, strings.Replace(clusterSubnet, "/s/", "/other/", 1), "False SubnetIDInvalid"},
		"managed network":        {managedSubnet, strings.Replace(managedSubnet, "aks-subnet", "more", 1), "False SubnetIDInvalid"},
		"the managed subnet":     {managedSubnet, strings.ToLower(managedSubnet), "True SubnetsReady"},
		"no subnet":              {clusterSubnet, "nodes", "False SubnetIDInvalid"},
	} {
		s.config.Subnet, s.subnetGets = c.cluster, nil
		s.change(func(class *v1beta1.AKSNodeClass) { class.Spec.VNETSubnetID = &c.own })
		class, _, err := s.pass()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.want(class, "SubnetsReady", c.want)
		if asked := len(s.subnetGets) > 0; asked == strings.HasPrefix(c.want, "False") {
			t.Errorf("%s: Azure is asked for %q", name, s.subnetGets)
		}
	}
}

// TestDiskEncryptionSet covers spec 71/14.
func TestDiskEncryptionSet(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	s.set = fmt.Errorf("disk encryption set x: %w", nodeclass.ErrForbidden)
	class, again, err := s.pass()
	if err != nil || again > time.Minute || again == 0 {
		t.Errorf("again after %s, %v", again, err)
	}
	s.want(class, "ValidationSucceeded", "False DiskEncryptionSetRBACMissing")
	s.set = errors.New("500")
	if class, _, err = s.pass(); err == nil {
		t.Error("no error")
	}
	s.want(class, "ValidationSucceeded", "False DiskEncryptionSetRBACMissing")
	s.set = nil
	if class, _, err = s.pass(); err != nil {
		t.Error(err)
	}
	s.want(class, "ValidationSucceeded", "True ValidationSucceeded")
	s.set = errors.New("500")
	if class, _, err = s.pass(); err == nil {
		t.Error("no error")
	}
	s.want(class, "ValidationSucceeded", "True ValidationSucceeded")
}

// TestUnsupported: a class that asks for what nodes cannot have is not ready, and says so.
func TestUnsupported(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	what := "spec.linuxOSConfig"
	s.config.Unsupported = func(*v1beta1.AKSNodeClass) string { return what }
	class, _, err := s.pass()
	if err != nil {
		t.Error(err)
	}
	s.want(class, "ValidationSucceeded", "False NotSupportedByProvisionMode")
	what = ""
	if class, _, err = s.pass(); err != nil {
		t.Error(err)
	}
	s.want(class, "ValidationSucceeded", "True ValidationSucceeded")
}

// TestLocalDNS covers spec 71/15, but for what is sent to Azure.
func TestLocalDNS(t *testing.T) {
	mode := func(m v1beta1.LocalDNSMode) *v1beta1.LocalDNS { return &v1beta1.LocalDNS{Mode: m} }
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	s.served = "v1.36.0"
	check := func(what string, dns *v1beta1.LocalDNS, want v1beta1.LocalDNSState, asked int) {
		t.Helper()
		s.change(func(c *v1beta1.AKSNodeClass) { c.Spec.LocalDNS = dns })
		s.asked = 0
		class, _, err := s.pass()
		if err != nil || *class.Status.LocalDNSState != want || s.asked != asked {
			t.Errorf("%s: %s, asked %d times, %v", what, *class.Status.LocalDNSState, s.asked, err)
		}
		s.want(class, "LocalDNSReady", "True LocalDNSReady")
	}
	check("absent", nil, "Disabled", 0)
	check("Preferred on 1.36", mode("Preferred"), "Disabled", 0)
	check("Required", mode("Required"), "Enabled", 0)
	check("Disabled", mode("Disabled"), "Disabled", 0)
	s.served = "v1.99.0"
	s.conflicts = true
	check("Preferred with conflicts", mode("Preferred"), "Disabled", 1)
	s.config.NetworkPlugin = "none"
	check("Preferred without plugin", mode("Preferred"), "Disabled", 0)
	s.config.NetworkPlugin, s.conflicts = "azure", false
	check("Preferred", mode("Preferred"), "Enabled", 1)
	s.conflicts = true
	check("Preferred with a new conflict", mode("Preferred"), "Enabled", 0)
	check("Disabled again", mode("Disabled"), "Disabled", 0)
	s.config.DNSConflicts = func(context.Context) (bool, error) { return false, errors.New("boom") }
	s.change(func(c *v1beta1.AKSNodeClass) { c.Spec.LocalDNS = mode("Preferred") })
	class, _, err := s.pass()
	if err == nil {
		t.Error("no error")
	}
	s.want(class, "LocalDNSReady", "False CheckingClusterRequirementsFailed")
	s.want(class, "SubnetsReady", "True SubnetsReady") // other steps run all the same
}

// claim stores a claim of the class.
func (s *stage) claim(name string, annotations map[string]string, drifted bool) *v1.NodeClaim {
	s.t.Helper()
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	c.Spec.NodeClassRef = &v1.NodeClassReference{Group: v1beta1.Group, Kind: v1beta1.Kind, Name: "default"}
	if err := s.api.Create(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	if drifted {
		c.Status.Conditions = []v1.Condition{{Type: v1.DriftedCondition, Status: metav1.ConditionTrue, Reason: "NodeClassDrift", LastTransitionTime: metav1.Now()}}
		if err := s.api.Status().Update(s.t.Context(), c); err != nil {
			s.t.Fatal(err)
		}
	}
	return c
}

// TestHash covers spec 71/10.
func TestHash(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	old := func() map[string]string {
		return map[string]string{v1beta1.HashAnnotationKey: "1", v1beta1.HashVersionAnnotationKey: "v2"}
	}
	s.change(func(c *v1beta1.AKSNodeClass) { c.Annotations = old() })
	claims := []*v1.NodeClaim{s.claim("plain", old(), false), s.claim("drifted", old(), true)}
	hash := &nodeclass.Hash{Client: s.api}
	if _, err := hash.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	class := &v1beta1.AKSNodeClass{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	want := class.Hash()
	for _, o := range []struct {
		object client.Object
		hash   string
	}{{class, want}, {claims[0], want}, {claims[1], "1"}} {
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(o.object), o.object); err != nil {
			t.Fatal(err)
		}
		a := o.object.GetAnnotations()
		if a[v1beta1.HashAnnotationKey] != o.hash || a[v1beta1.HashVersionAnnotationKey] != "v3" {
			t.Errorf("%s has %v, want hash %s", o.object.GetName(), a, o.hash)
		}
	}
}

// TestDeletion covers spec 71/16.
func TestDeletion(t *testing.T) {
	s := newStage(t, v1beta1.AKSNodeClassSpec{})
	class, _, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	claims := []*v1.NodeClaim{s.claim("b", nil, false), s.claim("a", nil, false)}
	if err := s.api.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a, b", "a"} {
		s.events = nil
		if _, again, err := s.pass(); err != nil || again != 10*time.Minute {
			t.Errorf("again after %s, %v", again, err)
		}
		if len(s.events) != 1 || s.events[0] != "Normal WaitingOnNodeClaimTermination Waiting on NodeClaim termination for "+want {
			t.Errorf("events %q", s.events)
		}
		if err := s.api.Delete(t.Context(), claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.pass(); err != nil {
		t.Error(err)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "default"}, class); !apierrors.IsNotFound(err) {
		t.Errorf("the class is there: %v", err)
	}
}
