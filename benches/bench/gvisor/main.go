// gVisor's network stack behind iperf3's control protocol: `gvisor TAP`, on a TAP that is there and up. Its own link for
// descriptors is used without offloads, as the other stacks on that TAP are.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	cookie   = 37
	buffer   = 64 << 10
	greatest = 4 << 20
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func problem(err tcpip.Error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(name string) *stack.Stack {
	fd, err := tun.OpenTAP(name)
	check(err)
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	problem(s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 1 << 20, Max: greatest}
	problem(s.SetTransportProtocolOption(tcp.ProtocolNumber, &receive))
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 1 << 20, Max: greatest}
	problem(s.SetTransportProtocolOption(tcp.ProtocolNumber, &send))
	link, err := fdbased.New(&fdbased.Options{
		FDs:            []int{fd},
		MTU:            1500,
		EthernetHeader: true,
		Address:        tcpip.LinkAddress("\x02\x00\x00\x00\x00\x04"),
	})
	check(err)
	problem(s.CreateNIC(1, link))
	address := tcpip.AddrFrom4([4]byte{192, 168, 1, 4})
	problem(s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address, PrefixLen: 24},
	}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	return s
}

func message(conn net.Conn) []byte {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil
	}
	text := make([]byte, binary.BigEndian.Uint32(head[:]))
	io.ReadFull(conn, text)
	return text
}

func in(stream net.Conn, moved *atomic.Uint64) {
	space := make([]byte, buffer)
	for {
		n, err := stream.Read(space)
		moved.Add(uint64(n))
		if err != nil {
			return
		}
	}
}

func out(stream net.Conn, moved *atomic.Uint64, over *atomic.Bool) {
	data := make([]byte, buffer)
	for !over.Load() {
		n, err := stream.Write(data)
		moved.Add(uint64(n))
		if err != nil {
			return
		}
	}
	stream.Close()
}

// One test: the control connection is there, the stream comes next.
func test(control net.Conn, listener net.Listener) {
	defer control.Close()
	space := make([]byte, cookie)
	if _, err := io.ReadFull(control, space); err != nil {
		return
	}
	control.Write([]byte{9})
	var parameters struct{ Reverse bool }
	json.Unmarshal(message(control), &parameters)
	control.Write([]byte{10})
	stream, err := listener.Accept()
	if err != nil {
		return
	}
	defer stream.Close()
	if _, err := io.ReadFull(stream, space); err != nil {
		return
	}
	control.Write([]byte{1, 2})
	var moved atomic.Uint64
	var over atomic.Bool
	start := time.Now()
	if parameters.Reverse {
		go out(stream, &moved, &over)
	} else {
		go in(stream, &moved)
	}
	if _, err := io.ReadFull(control, space[:1]); err != nil || space[0] != 4 {
		over.Store(true)
		return
	}
	seconds := time.Since(start).Seconds()
	over.Store(true)
	control.Write([]byte{13})
	message(control)
	text := fmt.Sprintf(`{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,`+
		`"streams":[{"id":1,"bytes":%d,"retransmits":-1,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":%f}]}`,
		moved.Load(), seconds)
	reply := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	control.Write(append(append(reply, text...), 14))
	control.Read(space[:1])
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gvisor TAP")
	}
	s := open(os.Args[1])
	here := tcpip.FullAddress{NIC: 1, Port: 5201}
	listener, err := gonet.ListenTCP(s, here, ipv4.ProtocolNumber)
	check(err)
	fmt.Println("Ready")
	for {
		control, err := listener.Accept()
		check(err)
		test(control, listener)
	}
}
