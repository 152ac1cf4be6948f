/*
 * linerate: a TCP/IP stack for C programs. Made from crates/capi by `cargo xtask capi`; do not edit.
 *
 * Sockets as in BSD, always non-blocking, over a device made of callbacks, with a clock of the caller. Errors are
 * negative errno numbers. docs/c.md tells how to begin.
 *
 * Lifetimes: what is passed in is only looked at during the call, but for the `user` of a device.
 * Threads: one call at a time for each stack; different stacks are independent.
 */

#ifndef LINERATE_H
#define LINERATE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 The device fills in TCP and UDP checksums on transmit.
 */
#define LR_DEVICE_TX_CHECKSUM 1

/*
 The device verifies checksums on receive and says so in `lr_rx_meta`.
 */
#define LR_DEVICE_RX_CHECKSUM 2

/*
 The device splits TCP super-segments (TSO). Has an effect only together with LR_DEVICE_TX_CHECKSUM.
 */
#define LR_DEVICE_TSO 4

/*
 The device may deliver coalesced TCP segments of up to 64 KiB (GRO, LRO), with their size in `lr_rx_meta`.
 */
#define LR_DEVICE_RX_COALESCING 8

/*
 The device carries IP packets without Ethernet headers, as a TUN device does. ARP and IPv6 neighbour discovery are
 answered inside and never reach the device; `mac` is not used. What else an IPv6 host says to its own link only
 (router solicitations, multicast listener reports) is dropped.
 */
#define LR_DEVICE_IP 16

/*
 `lr_tx_meta.segmentation`: the packet is one frame.
 */
#define LR_SEGMENT_NONE 0

/*
 `lr_tx_meta.segmentation`: to be split into TCP segments over IPv4.
 */
#define LR_SEGMENT_TCP4 1

/*
 `lr_tx_meta.segmentation`: to be split into TCP segments over IPv6.
 */
#define LR_SEGMENT_TCP6 2

/*
 `lr_rx_meta.checksum`: not looked at; the stack verifies it.
 */
#define LR_CHECKSUM_UNKNOWN 0

/*
 `lr_rx_meta.checksum`: IPv4 header and layer 4 are right.
 */
#define LR_CHECKSUM_GOOD 1

/*
 `lr_rx_meta.checksum`: one of them is wrong; the frame is counted and dropped.
 */
#define LR_CHECKSUM_BAD 2

/*
 `lr_stack_turn`: there is more to do at once; call it again without waiting.
 */
#define LR_TURN_AGAIN 1

/*
 `lr_stack_turn`: packets wait for the device; call it again when that has room.
 */
#define LR_TURN_DEVICE_FULL 2

/*
 A TCP/IP stack with its device and its sockets. Made by `lr_stack_new`, ended by `lr_stack_free`.

 A stack is used by one call at a time: calls from several threads must be ordered by a lock of the program. Stacks
 share nothing with each other.
 */
typedef struct lr_stack lr_stack;

/*
 Settings of a stack. Fill it with `lr_stack_config_init`, then change what you want to have otherwise.
 */
typedef struct lr_stack_config {
    /*
     Size of this structure, set by `lr_stack_config_init`; it tells versions apart.
     */
    size_t size;
    /*
     Our addresses with the lengths of their prefixes, separated by commas: "192.168.1.4/24,fd00::4/64". Null or empty
     for none. Needs to live only while `lr_stack_new` runs.
     */
    const char *addresses;
    /*
     Default gateways, separated by commas, at most one of each family is used. Null or empty for none. Each is the address of
     another host, in a network of `addresses` or link-local.
     */
    const char *gateways;
    /*
     Not zero: ask a DHCP server for an IPv4 address and gateway (RFC 2131). Default: 0.
     */
    uint8_t dhcp;
    /*
     Not zero: make IPv6 addresses from router advertisements (RFC 4862). Default: 0.
     */
    uint8_t slaac;
    /*
     Not zero: have IPv6, with a link-local address. Default: 1.
     */
    uint8_t ipv6;
    /*
     Neighbour solicitations sent before an IPv6 address is used, one second each (RFC 4862 section 5.1). Unless it is 0,
     IPv4 addresses are probed too, while they are used (RFC 5227). One that somebody has is given up. Default: 1.
     */
    uint8_t dad_transmits;
    /*
     Most sockets, 1 to 65,536. Default: 1,024.
     */
    uint32_t max_sockets;
    /*
     Frames that can lie received and unread, each in a buffer of the MTU (64 KiB with LR_DEVICE_RX_COALESCING),
     allocated at start; 1 to 1,048,576. Default: 1,024.
     */
    uint32_t receive_buffers;
    /*
     Most memory that sockets may hold, in bytes, 16 KiB to 1 TiB. Default: 16 MiB. Up to a quarter of it is pages,
     allocated when they are first needed.
     */
    size_t memory;
    /*
     Largest buffer of a stream socket that sizes its buffers by itself, in bytes, for each direction: 2 KiB to 1 GiB. The
     window scale follows from it. Default: 4 MiB.
     */
    size_t buffer_max;
    /*
     Random and secret bytes, different at every start: sequence numbers, ports and hash keys come from them.
     `lr_stack_config_init` fills them from the operating system; tests that must repeat set their own.
     */
    uint8_t seed[32];
} lr_stack_config;

/*
 What is asked of the device for one packet. All zero where the device has no capabilities.
 */
typedef struct lr_tx_meta {
    /*
     Where the device starts to sum, in bytes from the start of the packet; only if `checksum_offset` is not zero.
     */
    uint16_t checksum_start;
    /*
     Where the checksum goes, in bytes from `checksum_start`: 16 for TCP, 6 for UDP, 0 if there is nothing to fill in.
     The field holds the sum of the pseudo-header, as Linux and virtio want it.
     */
    uint16_t checksum_offset;
    /*
     Payload bytes of each segment where `segmentation` asks for a split; otherwise 0.
     */
    uint16_t segment_size;
    /*
     Bytes of all headers of a packet that is to be split.
     */
    uint16_t header_len;
    /*
     One of LR_SEGMENT_NONE, LR_SEGMENT_TCP4, LR_SEGMENT_TCP6.
     */
    uint8_t segmentation;
} lr_tx_meta;

/*
 What the device says of a received packet. All zero before `receive` is called.
 */
typedef struct lr_rx_meta {
    /*
     Payload bytes per original segment of a coalesced packet; 0 if it is one frame. Only with LR_DEVICE_RX_COALESCING.
     */
    uint16_t segment_size;
    /*
     One of LR_CHECKSUM_UNKNOWN, LR_CHECKSUM_GOOD, LR_CHECKSUM_BAD. Only with LR_DEVICE_RX_CHECKSUM.
     */
    uint8_t checksum;
} lr_rx_meta;

/*
 A network device made of callbacks. They are called only from within `lr_stack_turn`, on its thread; they must not
 call the stack that calls them (such calls return -EBUSY), must not throw C++ exceptions, and must not block.
 */
typedef struct lr_device {
    /*
     Passed to every callback; not looked at.
     */
    void *user;
    /*
     Sends one packet, the pieces one after the other (at most 19). Returns 0, or -EAGAIN when the ring is full (the
     same packet comes again later), or another negative errno (the packet is lost, and `lr_stack_turn` returns the
     error). The pieces may be used until this returns; where `completed` is given, until that counts the packet.
     */
    int (*transmit)(void *user, const struct iovec *pieces, size_t count, const struct lr_tx_meta *meta);
    /*
     Writes the next received packet into `buffer` and returns its length, at most `capacity`. Returns 0 or -EAGAIN
     when none is waiting, another negative errno on failure. `capacity` holds a frame of the MTU with two VLAN tags,
     or a coalesced one of 64 KiB where the device has LR_DEVICE_RX_COALESCING.
     */
    ssize_t (*receive)(void *user, void *buffer, size_t capacity, struct lr_rx_meta *meta);
    /*
     How many more packets have left the device since this was last called, in the order of `transmit`. May be null:
     then a packet has left when `transmit` returns 0.
     */
    size_t (*completed)(void *user);
    /*
     The Ethernet address.
     */
    uint8_t mac[6];
    /*
     Largest IP packet in bytes, 576 to 65,535.
     */
    uint16_t mtu;
    /*
     What the device can do: LR_DEVICE_... bits, and no others.
     */
    uint32_t capabilities;
} lr_device;

/*
 What a stack has counted, and what it holds.
 */
typedef struct lr_stats {
    /*
     Frames from the device.
     */
    uint64_t frames_received;
    /*
     Frames handed to the device.
     */
    uint64_t frames_sent;
    /*
     Bytes from the device, link headers included.
     */
    uint64_t bytes_received;
    /*
     Received packets that were dropped, for whatever reason.
     */
    uint64_t drops;
    /*
     TCP segments retransmitted.
     */
    uint64_t retransmits;
    /*
     TCP connections, half-open ones and TIME-WAIT included.
     */
    uint64_t connections;
    /*
     Of these, connections in TIME-WAIT.
     */
    uint64_t time_wait;
    /*
     Bytes charged to sockets.
     */
    uint64_t memory_used;
    /*
     The cap of these, in bytes.
     */
    uint64_t memory_limit;
} lr_stats;

/*
 What `lr_getsockopt` gives for TCP_INFO: the first 232 bytes of Linux's `struct tcp_info`, in its layout and its
 units, so that programs may read it with either type. What the stack does not count is 0.
 */
typedef struct lr_tcp_info {
    /*
     The state, by Linux's numbers: 1 ESTABLISHED, 2 SYN-SENT, 3 SYN-RECEIVED, 4 FIN-WAIT-1, 5 FIN-WAIT-2,
     6 TIME-WAIT, 7 CLOSED, 8 CLOSE-WAIT, 9 LAST-ACK, 10 LISTEN, 11 CLOSING.
     */
    uint8_t tcpi_state;
    /*
     Loss recovery, by Linux's numbers: 0 open, 1 disorder, 2 window reduced for a congestion mark, 3 fast recovery, 4 loss.
     */
    uint8_t tcpi_ca_state;
    /*
     Timeouts in a row without progress.
     */
    uint8_t tcpi_retransmits;
    /*
     Window or keep-alive probes in a row without an answer.
     */
    uint8_t tcpi_probes;
    /*
     How often the retransmission timeout is doubled.
     */
    uint8_t tcpi_backoff;
    /*
     What was agreed upon: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
     */
    uint8_t tcpi_options;
    /*
     Window scales: the peer's, and ours times 16.
     */
    uint8_t tcpi_wscale;
    /*
     0: not counted.
     */
    uint8_t tcpi_flags;
    /*
     Retransmission timeout in microseconds.
     */
    uint32_t tcpi_rto;
    /*
     0: not counted.
     */
    uint32_t tcpi_ato;
    /*
     Largest segment sent, in bytes of payload.
     */
    uint32_t tcpi_snd_mss;
    /*
     Full segments of the peer, as far as seen, in bytes of payload.
     */
    uint32_t tcpi_rcv_mss;
    /*
     Segments of the largest size in flight, rounded up.
     */
    uint32_t tcpi_unacked;
    /*
     Segments that the peer reported beyond a gap.
     */
    uint32_t tcpi_sacked;
    /*
     Segments taken to be lost, whether or not they were sent again.
     */
    uint32_t tcpi_lost;
    /*
     Segments that were sent again and are in the network.
     */
    uint32_t tcpi_retrans;
    /*
     0: not counted.
     */
    uint32_t tcpi_fackets;
    /*
     Milliseconds since data was sent last.
     */
    uint32_t tcpi_last_data_sent;
    /*
     0: not counted.
     */
    uint32_t tcpi_last_ack_sent;
    /*
     Milliseconds since data came, or the connection was established.
     */
    uint32_t tcpi_last_data_recv;
    /*
     Milliseconds since an acknowledgement came.
     */
    uint32_t tcpi_last_ack_recv;
    /*
     Path MTU in bytes.
     */
    uint32_t tcpi_pmtu;
    /*
     0: not counted.
     */
    uint32_t tcpi_rcv_ssthresh;
    /*
     Smoothed round-trip time in microseconds.
     */
    uint32_t tcpi_rtt;
    /*
     Its variation in microseconds.
     */
    uint32_t tcpi_rttvar;
    /*
     Slow-start threshold in segments; 0x7fffffff before the first loss.
     */
    uint32_t tcpi_snd_ssthresh;
    /*
     Congestion window in segments.
     */
    uint32_t tcpi_snd_cwnd;
    /*
     The segment size that we offer, less our timestamps, in bytes.
     */
    uint32_t tcpi_advmss;
    /*
     By how many segments the path was seen to reorder, at least 3.
     */
    uint32_t tcpi_reordering;
    /*
     0: not counted.
     */
    uint32_t tcpi_rcv_rtt;
    /*
     The window that we offer, in bytes.
     */
    uint32_t tcpi_rcv_space;
    /*
     Segments retransmitted since the start.
     */
    uint32_t tcpi_total_retrans;
    /*
     0: not counted.
     */
    uint64_t tcpi_pacing_rate;
    /*
     0: not counted.
     */
    uint64_t tcpi_max_pacing_rate;
    /*
     Payload bytes that the peer acknowledged.
     */
    uint64_t tcpi_bytes_acked;
    /*
     Payload bytes received in order.
     */
    uint64_t tcpi_bytes_received;
    /*
     0: not counted.
     */
    uint32_t tcpi_segs_out;
    /*
     Segments received.
     */
    uint32_t tcpi_segs_in;
    /*
     Payload bytes queued and neither sent nor acknowledged.
     */
    uint32_t tcpi_notsent_bytes;
    /*
     Least round-trip time of late in microseconds; 0xffffffff without one.
     */
    uint32_t tcpi_min_rtt;
    /*
     0: not counted.
     */
    uint32_t tcpi_data_segs_in;
    /*
     Segments with payload sent.
     */
    uint32_t tcpi_data_segs_out;
    /*
     0: not counted.
     */
    uint64_t tcpi_delivery_rate;
    /*
     Microseconds in which there was something to send, or to be acknowledged.
     */
    uint64_t tcpi_busy_time;
    /*
     Microseconds in which the peer's window was the limit.
     */
    uint64_t tcpi_rwnd_limited;
    /*
     Microseconds in which the send buffer was the limit.
     */
    uint64_t tcpi_sndbuf_limited;
    /*
     0: not counted.
     */
    uint32_t tcpi_delivered;
    /*
     0: not counted.
     */
    uint32_t tcpi_delivered_ce;
    /*
     Payload bytes sent, retransmissions included.
     */
    uint64_t tcpi_bytes_sent;
    /*
     Payload bytes retransmitted.
     */
    uint64_t tcpi_bytes_retrans;
    /*
     Duplicates that the peer reported.
     */
    uint32_t tcpi_dsack_dups;
    /*
     1 if the path was seen to reorder.
     */
    uint32_t tcpi_reord_seen;
    /*
     0: not counted.
     */
    uint32_t tcpi_rcv_ooopack;
    /*
     The window that the peer offers, in bytes.
     */
    uint32_t tcpi_snd_wnd;
} lr_tcp_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Receives into one buffer; see `lr_recvmsg`.

 # Safety

 As `lr_stack_turn`; `buffer` is null or points to `length` writable bytes that nobody else uses meanwhile.
 */
ssize_t lr_read(struct lr_stack *stack, int fd, void *buffer, size_t length);

/*
 Receives into `count` pieces (at most 1,024), which are filled one after the other; see `lr_recvmsg`.

 # Safety

 As `lr_stack_turn`; `pieces` is null or points to `count` pieces, each null or with as many writable bytes as it says.
 */
ssize_t lr_readv(struct lr_stack *stack,
                 int fd,
                 const struct iovec *pieces,
                 int count);

/*
 Receives into one buffer with flags; see `lr_recvmsg`.

 # Safety

 As `lr_read`.
 */
ssize_t lr_recv(struct lr_stack *stack, int fd, void *buffer, size_t length, int flags);

/*
 Receives into one buffer and tells the sender of a datagram; see `lr_recvmsg`. `address` and `address_length` may be
 null. On a stream socket the length becomes 0.

 # Safety

 As `lr_read`; `address_length` is null or valid, `address` is null or valid for `*address_length` bytes.
 */
ssize_t lr_recvfrom(struct lr_stack *stack,
                    int fd,
                    void *buffer,
                    size_t length,
                    int flags,
                    struct sockaddr *address,
                    socklen_t *address_length);

/*
 Receives. On a stream socket: as many bytes as are there and fit. On a datagram socket: one datagram, of which what
 does not fit is lost; then MSG_TRUNC is set in `msg_flags`, and the flag MSG_TRUNC makes the call return the whole
 length. `msg_name` (may be null) gets a datagram's sender. There are no control messages: `msg_controllen` becomes 0.
 The flag MSG_PEEK leaves the data there; a read would give the same. MSG_DONTWAIT and
 MSG_NOSIGNAL change nothing; urgent data (MSG_OOB) is not supported, it is delivered in line.

 Returns the number of bytes; 0 at the end of a stream or when it is shut for reading; -EAGAIN if there is nothing yet;
 once the error that ended the connection (-ECONNRESET, -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH), then 0; -ENOTCONN;
 -EOPNOTSUPP for other flags; -EINVAL for bad counts or lengths; -EFAULT for a null piece with a length; -EBADF.

 # Safety

 As `lr_stack_turn`; `message` is null or valid, its pointers as for `lr_readv` and `lr_recvfrom`.
 */
ssize_t lr_recvmsg(struct lr_stack *stack,
                   int fd,
                   struct msghdr *message,
                   int flags);

/*
 Sends one buffer; see `lr_sendmsg`.

 # Safety

 As `lr_stack_turn`; `buffer` is null or points to `length` bytes that nobody changes meanwhile.
 */
ssize_t lr_write(struct lr_stack *stack, int fd, const void *buffer, size_t length);

/*
 Sends `count` pieces (at most 1,024) one after the other; see `lr_sendmsg`.

 # Safety

 As `lr_stack_turn`; `pieces` is null or points to `count` pieces, each null or with as many bytes as it says.
 */
ssize_t lr_writev(struct lr_stack *stack, int fd, const struct iovec *pieces, int count);

/*
 Sends one buffer with flags; see `lr_sendmsg`.

 # Safety

 As `lr_write`.
 */
ssize_t lr_send(struct lr_stack *stack, int fd, const void *buffer, size_t length, int flags);

/*
 Sends one buffer to an address; see `lr_sendmsg`. A null `address` is none.

 # Safety

 As `lr_write`; `address` is null or points to `address_length` bytes.
 */
ssize_t lr_sendto(struct lr_stack *stack,
                  int fd,
                  const void *buffer,
                  size_t length,
                  int flags,
                  const struct sockaddr *address,
                  socklen_t address_length);

/*
 Sends. The bytes are copied before this returns and leave with the next `lr_stack_turn`. On a stream socket as many
 are taken as fit in the send buffer; on a datagram socket the pieces are one datagram, to `msg_name` or, if that is
 null, the connected peer; a stream socket does not look at it. An unbound datagram socket is bound to a free port
 first. There are no control messages: `msg_controllen` must be 0. MSG_DONTWAIT, MSG_NOSIGNAL (no signal is ever raised) and MSG_MORE change nothing.

 Returns the number of bytes taken; -EAGAIN if there is no room; -EPIPE on a stream that is shut for writing or over;
 once the error that ended it; -ENOTCONN; -EDESTADDRREQ without an address; -EMSGSIZE for a datagram that is too long; -ENETUNREACH; -EOPNOTSUPP for other flags or control messages; -EINVAL,
 -EFAULT, -EBADF, -EAFNOSUPPORT.

 # Safety

 As `lr_stack_turn`; `message` is null or valid, its pointers as for `lr_writev` and `lr_sendto`.
 */
ssize_t lr_sendmsg(struct lr_stack *stack,
                   int fd,
                   const struct msghdr *message,
                   int flags);

/*
 Opens a socket: `domain` AF_INET or AF_INET6, `kind` SOCK_STREAM or SOCK_DGRAM (SOCK_NONBLOCK and SOCK_CLOEXEC may be
 added and change nothing: every socket is non-blocking), `protocol` 0 or IPPROTO_TCP or IPPROTO_UDP to match.

 Returns a descriptor (0 or more, only good for this stack); -EAFNOSUPPORT, -EPROTOTYPE or -EPROTONOSUPPORT for what
 there is not; -EMFILE when `max_sockets` are open.

 # Safety

 As `lr_stack_turn`.
 */
int lr_socket(struct lr_stack *stack,
              int domain,
              int kind,
              int protocol);

/*
 Binds a socket to one of our addresses (or the unspecified one, for all) and a port; port 0 takes a free one.

 Returns 0; -EADDRNOTAVAIL if the address is not ours; -EADDRINUSE; -EINVAL if it is bound, connected or listening
 already, or `length` is short; -EAFNOSUPPORT for another family than the socket's; -EBADF; -EFAULT.

 # Safety

 As `lr_stack_turn`; `address` is null or points to `length` bytes.
 */
int lr_bind(struct lr_stack *stack,
            int fd,
            const struct sockaddr *address,
            socklen_t length);

/*
 Makes a stream socket a listener for which up to `backlog` connections (1 to 65,535) may wait, half-open ones
 included; beyond that SYNs get cookies. Accepted sockets start with the listener's options. An AF_INET6 listener on
 the unspecified address takes IPv4 connections too, unless IPV6_V6ONLY is set.

 Returns 0; -EADDRINUSE; -EINVAL if it is connected; -EOPNOTSUPP on a datagram socket; -EBADF.

 # Safety

 As `lr_stack_turn`.
 */
int lr_listen(struct lr_stack *stack,
              int fd,
              int backlog);

/*
 Takes the next established connection of a listener. `address` and `length` get the peer's address and may be null.

 Returns the new descriptor; -EAGAIN if none waits; -EMFILE (the connection keeps waiting); -EINVAL if the socket does
 not listen; -EOPNOTSUPP on a datagram socket; -EBADF.

 # Safety

 As `lr_stack_turn`; `length` is null or valid, `address` is null or valid for `*length` bytes.
 */
int lr_accept(struct lr_stack *stack,
              int fd,
              struct sockaddr *address,
              socklen_t *length);

/*
 Connects a socket. A stream socket starts its handshake: POLLOUT tells when that is over, and SO_ERROR how. A datagram
 socket gets a peer, for `lr_send` and as the only one it receives from; the unspecified address takes the peer away.

 Returns 0 on a datagram socket; on a stream socket -EINPROGRESS the first time, -EALREADY while the handshake is
 under way, -EISCONN when connected, and once the error of a failed one (-ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH),
 after which it can connect again. Also -ENETUNREACH without a route, -EADDRNOTAVAIL if the bound address and port
 cannot be used with this peer, -ENOBUFS, -EAFNOSUPPORT, -EINVAL, -EBADF, -EFAULT.

 # Safety

 As `lr_stack_turn`; `address` is null or points to `length` bytes.
 */
int lr_connect(struct lr_stack *stack,
               int fd,
               const struct sockaddr *address,
               socklen_t length);

/*
 Shuts a connection: `how` SHUT_RD (reads return 0 where nothing is waiting, instead of -EAGAIN), SHUT_WR (FIN after
 everything written; further writes return -EPIPE) or SHUT_RDWR.

 Returns 0; -ENOTCONN; -EINVAL; -EBADF.

 # Safety

 As `lr_stack_turn`.
 */
int lr_shutdown(struct lr_stack *stack,
                int fd,
                int how);

/*
 Closes a socket; its descriptor is free at once. What was written is still delivered, in the background and bounded by
 the user timeout, also with SO_LINGER (nothing here waits). The connection is reset instead if SO_LINGER is on with
 0 seconds, if received data was not read (RFC 2525 section 2.17), or when data comes later. Connections of a listener that were not accepted
 are reset.

 Returns 0; -EBADF.

 # Safety

 As `lr_stack_turn`.
 */
int lr_close(struct lr_stack *stack,
             int fd);

/*
 Writes the value of an option to `value`, cut to `*length` bytes, and its length to `*length`. The numbers are the
 system's: SOL_SOCKET with SO_ERROR (a positive errno or 0; reading it clears it), SO_TYPE, SO_DOMAIN, SO_ACCEPTCONN,
 SO_REUSEADDR, SO_KEEPALIVE, SO_SNDBUF, SO_RCVBUF (bytes; not doubled, brought into 2 KiB to 1 GiB), SO_LINGER (struct
 linger); IPPROTO_TCP with TCP_NODELAY, TCP_QUICKACK, TCP_MAXSEG (bytes, 88 to 65,535), TCP_KEEPIDLE, TCP_KEEPINTVL
 (seconds), TCP_KEEPCNT, TCP_USER_TIMEOUT (ms; 0: the default of 180 s), TCP_CONGESTION (text), TCP_INFO (lr_tcp_info); IPPROTO_IP with IP_TOS; IPPROTO_IPV6
 with IPV6_TCLASS and IPV6_V6ONLY. All others are an int.

 Returns 0; -ENOPROTOOPT for an option that there is not; -EBADF; -EFAULT.

 # Safety

 As `lr_stack_turn`; `length` is null or valid, `value` is null or points to `*length` writable bytes.
 */
int lr_getsockopt(struct lr_stack *stack,
                  int fd,
                  int level,
                  int name,
                  void *value,
                  socklen_t *length);

/*
 Sets an option; see `lr_getsockopt` for their values. TCP_CONGESTION knows "cubic" and "reno". SO_REUSEADDR lets a socket bind to
 a port of connections in TIME-WAIT, which here is always allowed, or of another bound socket that does not listen.
 TCP_MAXSEG has an effect before connect, on a listener for connections to come; IPV6_V6ONLY before connect and listen. Buffers of a fixed size end autotuning.

 Returns 0; -ENOPROTOOPT for an option that there is not, or that can only be read; -EINVAL for a value out of range
 or a short `length`; -ENOENT for an unknown congestion control; -EBADF; -EFAULT.

 # Safety

 As `lr_stack_turn`; `value` is null or points to `length` bytes.
 */
int lr_setsockopt(struct lr_stack *stack,
                  int fd,
                  int level,
                  int name,
                  const void *value,
                  socklen_t length);

/*
 Writes the address that a socket is bound to.

 Returns 0; -EBADF; -EFAULT.

 # Safety

 As `lr_accept`.
 */
int lr_getsockname(struct lr_stack *stack, int fd, struct sockaddr *address, socklen_t *length);

/*
 Writes the address of the peer.

 Returns 0; -ENOTCONN; -EBADF; -EFAULT.

 # Safety

 As `lr_accept`.
 */
int lr_getpeername(struct lr_stack *stack, int fd, struct sockaddr *address, socklen_t *length);

/*
 The part of fcntl that makes sense here: F_GETFL gives O_RDWR | O_NONBLOCK; F_SETFL with O_NONBLOCK changes nothing.

 Returns the flags or 0; -EOPNOTSUPP for F_SETFL without O_NONBLOCK (no call here ever blocks); -EINVAL for another
 command; -EBADF.

 # Safety

 As `lr_stack_turn`.
 */
int lr_fcntl(struct lr_stack *stack,
             int fd,
             int command,
             int argument);

/*
 The part of ioctl that makes sense here: FIONREAD (SIOCINQ) writes to the int behind `argument` how many bytes can be
 read, on a datagram socket the length of the next datagram; TIOCOUTQ (SIOCOUTQ) how many were written and not
 acknowledged; FIONBIO with a value other than zero changes nothing.

 Returns 0; -EINVAL on a listener; -EOPNOTSUPP for FIONBIO with zero; -ENOTTY for another request; -EBADF; -EFAULT.

 # Safety

 As `lr_stack_turn`; `argument` is null or points to an int.
 */
int lr_ioctl(struct lr_stack *stack,
             int fd,
             unsigned long request,
             void *argument);

/*
 Looks at sockets, without waiting: sets `revents` of each entry to what is true now of what `events` asks for (POLLIN,
 POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM), and to POLLERR, POLLHUP and POLLNVAL where they apply. Entries with a
 negative descriptor are skipped. Readiness is by level: it stays until it is used up.

 Returns the number of entries with any bit; -EINVAL for more than 65,536 entries; -EFAULT.

 # Safety

 As `lr_stack_turn`; `entries` is null or points to `count` entries.
 */
int lr_poll(struct lr_stack *stack,
            struct pollfd *entries,
            nfds_t count);

/*
 Fills `config` with the defaults and a random seed.

 Returns 0; -EFAULT if `config` is null; -EIO if the operating system has no random bytes.

 # Safety

 `config` is null or points to memory for a `lr_stack_config`.
 */
int lr_stack_config_init(struct lr_stack_config *config);

/*
 Makes a stack on a device and stores it in `*stack`. Both structures are copied; `device->user` and what the callbacks
 need must live until `lr_stack_free`. `now_ns` is the time by the caller's clock: nanoseconds since any moment, which
 must not be negative nor ever go back (CLOCK_MONOTONIC, a counter of a simulation).

 Returns 0; -EFAULT if a pointer or a callback other than `completed` is null; -EINVAL if the configuration was not
 made by `lr_stack_config_init` of this version, an address cannot be read, or memory, MTU or Ethernet address are out of
 range: `lr_stack_flaw` says which.

 # Safety

 The pointers are null or valid; texts end with a zero byte.
 */
int lr_stack_new(const struct lr_stack_config *config,
                 const struct lr_device *device,
                 uint64_t now_ns,
                 struct lr_stack **stack);

/*
 Why `lr_stack_new` would return -EINVAL or -EFAULT for these: a text in English for people that names the first field at fault and what
 is expected there, and that lives as long as the program. Null if nothing is wrong with them.

 # Safety

 The pointers are null or valid; texts end with a zero byte.
 */
const char *lr_stack_flaw(const struct lr_stack_config *config,
                          const struct lr_device *device);

/*
 Ends a stack: closes its sockets without telling their peers and frees everything. The device's callbacks are not
 called any more, also for packets that it still holds. Null does nothing.

 Returns 0; -EBUSY when called from one of the stack's callbacks.

 # Safety

 `stack` is null or came from `lr_stack_new`; it is not used afterwards.
 */
int lr_stack_free(struct lr_stack *stack);

/*
 One turn of the loop: takes what the device has received, runs timers that are due, and hands to the device what is to
 be sent. Everything that the callbacks do, they do in here. `now_ns` is the time as in `lr_stack_new`; an earlier time
 than the last one counts as that.

 Returns LR_TURN_... bits, 0 for none; or the device's error as negative errno: sockets stay usable, and the next turn
 tries again.

 # Safety

 `stack` is null or came from `lr_stack_new` and was not freed; no other thread uses it meanwhile. This holds for every
 function that takes a stack.
 */
int lr_stack_turn(struct lr_stack *stack,
                  uint64_t now_ns);

/*
 When to call `lr_stack_turn` at the latest if the device receives nothing before: a time in ns of the caller's clock.
 It is the time of the last turn if there is something to do at once (sockets were written to, say), and UINT64_MAX if
 nothing will ever be due by itself, or `stack` is null. It may be earlier than needed.

 # Safety

 As `lr_stack_turn`.
 */
uint64_t lr_stack_next_timeout(const struct lr_stack *stack);

/*
 Writes the `index`th of our usable addresses (0 is the first) with its prefix length: what DHCP or router
 advertisements gave, among others. `address` has room for `*length` bytes, which becomes the length of what is there;
 `prefix_length` may be null.

 Returns 0; -ENOENT if there are not so many; -EFAULT for a null pointer.

 # Safety

 As `lr_stack_turn`; the other pointers are null or valid, `address` for `*length` bytes.
 */
int lr_stack_address(const struct lr_stack *stack,
                     size_t index,
                     struct sockaddr *address,
                     socklen_t *length,
                     uint8_t *prefix_length);

/*
 Adds an address with the length of its prefix, as "192.168.1.4/24", while the stack runs. It is used once nobody has objected to
 it, as those of `lr_stack_config.addresses`: `lr_stack_address` has it then. One that is there stays.

 Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none, or an address of no single host; -EAFNOSUPPORT for IPv6 where
 `lr_stack_config.ipv6` is 0 or the MTU below 1,280; -ENOSPC beyond 32 addresses.

 # Safety

 As `lr_stack_turn`; `address` is null or ends with a zero byte.
 */
int lr_stack_add_address(struct lr_stack *stack,
                         const char *address);

/*
 Gives an address up, as "192.168.1.4", wherever it is from. Connections from it are reset. One that DHCP or a router gave comes back
 when they give it again.

 Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none; -EADDRNOTAVAIL if it is none of ours.

 # Safety

 As `lr_stack_turn`; `address` is null or ends with a zero byte.
 */
int lr_stack_remove_address(struct lr_stack *stack,
                            const char *address);

/*
 Sets (`add` not 0) or takes back a default gateway, as "192.168.1.1". Of several of a family the first one is used.

 Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none; and if it is added, -EHOSTUNREACH if it is not another host
 in the network of an address, -EAFNOSUPPORT as `lr_stack_add_address`, -ENOSPC beyond 32 routes.

 # Safety

 As `lr_stack_turn`; `gateway` is null or ends with a zero byte.
 */
int lr_stack_gateway(struct lr_stack *stack,
                     const char *gateway,
                     int add);

/*
 Writes what the stack has counted.

 Returns 0; -EFAULT for a null pointer.

 # Safety

 As `lr_stack_turn`; `stats` is null or points to memory for a `lr_stats`.
 */
int lr_stack_stats(const struct lr_stack *stack, struct lr_stats *stats);

/*
 The version of this library, as "0.1.0". Lives for ever.
 */
const char *lr_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LINERATE_H */
