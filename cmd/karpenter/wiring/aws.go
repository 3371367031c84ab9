// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws"
	"karpenter/cloud/aws/catalogue"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/interruption"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/nodeclaim"
	"karpenter/cloud/aws/nodeclass"
	"karpenter/cloud/aws/profile"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/aws/userdata"
	"karpenter/cloud/aws/version"
	"karpenter/cloud/aws/zonalshift"
	"karpenter/cloud/batch"
	"karpenter/cloud/loop"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/situation"
	"karpenter/control/lifecycle"
	"karpenter/kube/events"
	"karpenter/kube/meter"
	"karpenter/model"
)

// Amazon is what the AWS provider gets from the process beside its Supplies.
type Amazon struct {
	Services  *awsclient.Services
	Discovery discovery.ServerVersionInterface
	CABundle  string // by which this process trusts the API server: base64 of PEM
	// Calls records the results of calls to the Services; nil = they are not
	// reported.
	Calls *awsclient.Ledger
}

// earlyCollections is the number of rounds of the garbage collector at the
// start that follow each other quickly, because instances that the previous
// process left behind can be expensive.
const earlyCollections = 20

// amazon is the AWS provider in the making.
type amazon struct {
	Supplies
	Amazon
	caBundle string

	version   *version.Cluster
	shifts    *zonalshift.Shifts // nil = they are not followed
	language  *expression.Language
	shortages *shortage.Log
	memory    *instancetype.Memory
	types     *catalogue.Catalogue

	images       *image.Images
	subnets      *network.Subnets
	counts       *reservation.Counts
	reservations *reservation.Reservations
	groups       *reservation.Groups
	profiles     *profile.Profiles
	templates    *template.Templates
	cidr         *template.ServiceCIDR
	provider     *aws.Provider
}

// AWS creates the AWS provider. It asks AWS for what every part needs: the
// endpoint of the cluster, its version, and the instance types.
func AWS(ctx context.Context, from Amazon, s Supplies) (Provider, error) {
	a := &amazon{
		Supplies: s, Amazon: from, caBundle: cmp.Or(s.Config.AWS.ClusterCABundle, from.CABundle),
		shortages: &shortage.Log{}, memory: &instancetype.Memory{}, counts: &reservation.Counts{},
	}
	if err := a.discover(ctx); err != nil {
		return Provider{}, err
	}
	if err := a.sells(ctx); err != nil {
		return Provider{}, err
	}
	cluster, err := a.cluster(ctx)
	if err != nil {
		return Provider{}, err
	}
	a.launches(cluster)
	return Provider{
		Provider: a.provider, Labels: awsv1.Labels(), Extras: a.provider.Extras, Kubelet: a.provider.Kubelet, Register: a.register, Health: a.health,
		Hooks: []lifecycle.Hook{&aws.PartitionHook{Provider: a.provider}}, EarlyCollections: earlyCollections,
	}, nil
}

// health reports the calls that fail for a reason which does not lie in what they ask for: a
// permission is missing, or the queue or prices cannot be read.
func (a *amazon) health() situation.Health {
	out := situation.Health{Cloud: config.CloudAWS, Queue: a.Config.AWS.InterruptionQueue}
	if a.Calls == nil {
		return out
	}
	for _, o := range a.Calls.Outcomes() {
		if o.Action == situation.SpotPricesAction {
			out.SpotPrices = o.Answered
		}
		if !o.Failing.IsZero() && (o.Refused || slices.Contains(situation.ReadActions(), o.Action)) {
			out.Calls = append(out.Calls, situation.Failing{What: o.Action, Since: o.Failing, Code: o.Code, Refused: o.Refused})
		}
	}
	return out
}

// discover creates the parts that find subnets, images and other resources, and
// reads the version of the cluster.
func (a *amazon) discover(ctx context.Context) error {
	c, ec2 := &a.Config.AWS, a.Services.EC2
	from := version.Config{Discovery: a.Discovery}
	if c.EKSControlPlane {
		from = version.Config{EKS: a.Services.EKS, Name: a.Config.ClusterName}
	}
	a.version = version.New(from)
	if err := a.version.Refresh(ctx); err != nil {
		return fmt.Errorf("version of the cluster: %w", err)
	}
	if c.EnableZonalShift {
		a.shifts = zonalshift.New(zonalshift.Config{
			EKS: a.Services.EKS, Shifts: a.Services.ZonalShift, Cluster: a.Config.ClusterName, Clock: a.Clock,
			Reader: a.Manager.GetClient(),
			Tell: func(e zonalshift.Event) {
				a.Recorder.Publish(events.Event{Object: e.Object, Type: e.Type, Reason: e.Reason, Message: e.Message, Dedupe: e.Dedupe})
			},
		})
		if err := a.shifts.Load(ctx); err != nil {
			a.Manager.GetLogger().Error(err, "starting without zonal shifts: nodes may be launched in a zone that traffic is shifted away from; trying again every "+
				zonalshift.Period.String()+"; allow the controller arc-zonal-shift:GetManagedResource and eks:DescribeCluster")
		}
	}
	if c.NodeClassCEL {
		var err error
		if a.language, err = expression.NewLanguage(); err != nil {
			return err
		}
	}
	a.images = image.New(image.Config{EC2: ec2, SSM: a.Services.SSM, Kubernetes: a.version.Version, Refresh: c.AMIRefreshInterval, Clock: a.Clock})
	a.subnets = network.NewSubnets(ec2, a.Clock, c.SubnetRefreshInterval)
	a.reservations = reservation.NewReservations(ec2, a.Clock, a.counts)
	a.groups = reservation.NewGroups(ec2, a.Clock)
	a.profiles = profile.New(profile.Config{IAM: a.Services.IAM, Clock: a.Clock, Region: a.Services.Region, ClusterName: a.Config.ClusterName})
	a.cidr = template.NewServiceCIDR(a.Services.EKS, a.Config.ClusterName, a.Clock)
	return nil
}

// region returns what all node classes have in common.
func (a *amazon) region() instancetype.Cluster {
	c := &a.Config.AWS
	return instancetype.Cluster{
		Region: a.Services.Region, MemoryOverhead: a.Config.VMMemoryOverheadPercent, ReservedENIs: int64(c.ReservedENIs),
		GPUDevices: c.DRANVIDIAGPU && !a.Config.IgnoreDRARequests, EFADevices: c.DRAEFA && !a.Config.IgnoreDRARequests,
	}
}

// sells creates the catalogue of instance types, and fills it.
func (a *amazon) sells(ctx context.Context) error {
	config := catalogue.Config{
		EC2: a.Services.EC2, Pricing: a.Services.Pricing, Cluster: a.region(), Clock: a.Clock, Metrics: catalogue.NewMetrics(a.Registry),
		Shortages: a.shortages, Memory: a.memory, Shifts: a.shifts, Formulas: a.language,
		Group: a.groups.For,
	}
	if a.Config.AWS.IsolatedVPC {
		config.Pricing = nil
	}
	if a.Config.Gates.ReservedCapacity {
		config.Left = a.counts.Left
	}
	if a.Overlay != nil {
		config.Overlays = a.Manager.GetClient()
	}
	var err error
	if a.types, err = catalogue.New(config); err != nil {
		return err
	}
	if err := a.types.Refresh(ctx); err != nil {
		return fmt.Errorf("instance types of region %s: %w", a.Services.Region, err)
	}
	return nil
}

// cluster returns what instances need to join the cluster.
func (a *amazon) cluster(ctx context.Context) (userdata.Cluster, error) {
	c := &a.Config
	out := userdata.Cluster{Name: c.ClusterName, Endpoint: c.ClusterEndpoint, CABundle: a.caBundle, DNS: a.dns(ctx)}
	if out.Endpoint != "" {
		return out, nil
	}
	answer, err := a.Services.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.ClusterName})
	if err != nil {
		return out, fmt.Errorf("EKS does not tell the endpoint of cluster %s (set --cluster-endpoint or CLUSTER_ENDPOINT to do without): %w", c.ClusterName, err)
	}
	if answer.Cluster == nil || answer.Cluster.Endpoint == nil {
		return out, fmt.Errorf("EKS knows no endpoint of cluster %s yet: set --cluster-endpoint or CLUSTER_ENDPOINT, or try again when it is active", c.ClusterName)
	}
	out.Endpoint = *answer.Cluster.Endpoint
	return out, nil
}

// dns returns the address of the cluster's DNS, "" when there is none of the
// usual name.
func (a *amazon) dns(ctx context.Context) string {
	service := &corev1.Service{}
	err := a.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, service)
	if err == nil {
		_, err = netip.ParseAddr(service.Spec.ClusterIP)
	}
	if err != nil {
		log := a.Manager.GetLogger()
		if apierrors.IsNotFound(err) {
			log.Info("cannot find the service kube-system/kube-dns: kubelets use the DNS address of their EC2NodeClass or image")
		} else {
			log.Error(err, "cannot read the service kube-system/kube-dns: kubelets use the DNS address of their EC2NodeClass or image")
		}
		return ""
	}
	return service.Spec.ClusterIP
}

// launches creates the parts that launch instances.
func (a *amazon) launches(cluster userdata.Cluster) {
	reserved := a.Config.Gates.ReservedCapacity
	a.templates = template.New(template.Config{
		EC2: a.Services.EC2, Clock: a.Clock, Metrics: template.NewMetrics(a.Registry), Region: a.Services.Region,
		Cluster: cluster, CIDR: a.cidr.Get, ReservedCapacity: reserved,
	})
	config := aws.Config{
		Client: a.Manager.GetClient(), Live: a.Manager.GetAPIReader(), Clock: a.Clock,
		Types: a.types.Types, Group: a.groups.For, Overlay: a.Overlay, CABundle: a.caBundle,
		Additional: a.Additional, Extras: a.extras,
		Event: a.tell, LegacyRepair: a.Config.LegacyNodeRepair, RebootForRepair: a.Config.AWS.RebootForRepair,
		Instances: instance.Config{
			EC2: a.Services.EC2, Cluster: cluster.Name, Clock: a.Clock, ReservedCapacity: reserved,
			Metrics: instance.NewMetrics(a.Registry), Batches: batch.NewMetrics(a.Registry, meter.DurationBuckets()),
			Launch: instance.LaunchConfig{Templates: a.templates, Subnets: a.subnets, Reservations: a.counts, Shortages: a.shortages},
		},
	}
	if a.shifts != nil {
		config.Instances.Shifted = a.shifts.Shifted
	}
	a.provider = aws.New(config)
}

// extras returns what nodes of the class cost besides their instances.
func (a *amazon) extras(ctx context.Context, class *awsv1.EC2NodeClass) []model.Extra {
	return a.types.NodeExtras(class, a.subnets.PublicZones(ctx, class)).Parts()
}

// register adds the provider's controllers to the manager.
func (a *amazon) register(mgr ctrl.Manager) error {
	steps := []func(ctrl.Manager) error{
		a.version.Register, a.types.Register, a.images.Register, a.provider.Register, a.nodeClasses, a.claims,
		func(mgr ctrl.Manager) error {
			return loop.Every(mgr, "launchtemplate", template.Period, a.templates.Maintain)
		},
	}
	if !a.Config.DisableClusterStateObservability {
		steps = append(steps, func(mgr ctrl.Manager) error {
			return (&catalogue.Report{
				Catalogue: a.types, Provider: a.provider, Reader: mgr.GetClient(), Reserved: a.Config.Gates.ReservedCapacity,
			}).Register(mgr, a.Registry)
		})
	}
	if a.shifts != nil {
		steps = append(steps, a.shifts.Register)
	}
	var failures []error
	for _, step := range steps {
		failures = append(failures, step(mgr))
	}
	return errors.Join(failures...)
}

// nodeClasses adds the controllers of EC2NodeClass.
func (a *amazon) nodeClasses(mgr ctrl.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: nodeclass.Workers}
	c := &a.Config.AWS
	reconciler := nodeclass.New(nodeclass.Config{
		Client: mgr.GetClient(), Clock: a.Clock, ClusterName: a.Config.ClusterName, Cluster: a.region(), Language: a.language,
		ReservedCapacity: a.Config.Gates.ReservedCapacity, NoRehearsal: c.DisableDryRun, IsolatedVPC: c.IsolatedVPC,
		Tell: func(class *awsv1.EC2NodeClass, eventType, reason, message string) {
			a.Recorder.Publish(events.Event{Object: class, Type: eventType, Reason: reason, Message: message})
		},
		AWS: nodeclass.AWS{
			Images: a.images, Subnets: a.subnets, SecurityGroups: network.NewSecurityGroups(a.Services.EC2, a.Clock, a.Config.AWS.SecurityGroupRefreshInterval),
			Reservations: a.reservations, PlacementGroups: a.groups, Profiles: a.profiles, Templates: a.templates,
			Launch: a.Services.EC2, Facts: a.types.Facts, CIDR: a.cidr.Get,
		},
	})
	failures := []error{
		reconciler.Register(mgr, options),
		(&nodeclass.Hash{Client: mgr.GetClient(), CABundle: a.caBundle}).Register(mgr, options),
	}
	if !c.IsolatedVPC {
		failures = append(failures, (&nodeclass.Collector{Client: mgr.GetClient(), Profiles: a.profiles}).Register(mgr, controller.Options{}))
	}
	return errors.Join(failures...)
}

// claims adds the controllers of NodeClaims that only EC2 needs.
func (a *amazon) claims(mgr ctrl.Manager) error {
	claims := &nodeclaim.Claims{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Tell: a.tell, Disrupted: a.Disrupted}
	metrics := interruption.NewMetrics(a.Registry, meter.DurationBuckets())
	failures := []error{
		(&nodeclaim.Tagging{
			Client: mgr.GetClient(), Clock: a.Clock, Cluster: a.Config.ClusterName, Instances: a.provider.Instances(),
		}).Register(mgr, controller.Options{}),
		(&nodeclaim.Memory{Claims: claims, Clock: a.Clock, Sights: a.memory}).Register(mgr, controller.Options{}),
		interruption.NewStatuses(interruption.StatusConfig{
			EC2: a.Services.EC2, Claims: claims, Clock: a.Clock, Metrics: metrics,
		}).Register(mgr),
	}
	if name := a.Config.AWS.InterruptionQueue; name != "" {
		failures = append(failures, interruption.NewQueue(interruption.QueueConfig{
			SQS: a.Services.SQS, Name: name, Claims: claims, Clock: a.Clock, Metrics: metrics,
			Shortages: a.shortages, MarkRebalance: a.Config.RebalancePremium != nil,
		}).Register(mgr))
	}
	if a.Config.Gates.ReservedCapacity {
		failures = append(failures,
			(&nodeclaim.Demotion{Claims: claims, Instances: a.provider.Instances()}).Register(mgr),
			(&nodeclaim.Expiration{Claims: claims, Reservations: a.reservations}).Register(mgr))
	}
	return errors.Join(failures...)
}

func (a *amazon) tell(object client.Object, eventType, reason, message string) {
	a.Recorder.Publish(events.Event{Object: object, Type: eventType, Reason: reason, Message: message})
}
