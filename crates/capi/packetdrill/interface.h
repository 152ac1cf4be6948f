/* What packetdrill asks of a shared object that it tests: this table, filled in by `packetdrill_interface_init`.
 * The order of the members is the binary interface. Calls return -1 and set errno, as the system's do. */
#ifndef LINERATE_PACKETDRILL_INTERFACE_H
#define LINERATE_PACKETDRILL_INTERFACE_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct packetdrill_interface {
    void *userdata; /* the first argument of everything below */
    void (*free)(void *);
    int (*socket)(void *, int domain, int type, int protocol);
    int (*bind)(void *, int fd, const struct sockaddr *, socklen_t);
    int (*listen)(void *, int fd, int backlog);
    int (*accept)(void *, int fd, struct sockaddr *, socklen_t *);
    int (*connect)(void *, int fd, const struct sockaddr *, socklen_t);
    ssize_t (*read)(void *, int fd, void *, size_t);
    ssize_t (*readv)(void *, int fd, const struct iovec *, int);
    ssize_t (*recv)(void *, int fd, void *, size_t, int flags);
    ssize_t (*recvfrom)(void *, int fd, void *, size_t, int flags, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(void *, int fd, struct msghdr *, int flags);
    ssize_t (*write)(void *, int fd, const void *, size_t);
    ssize_t (*writev)(void *, int fd, const struct iovec *, int);
    ssize_t (*send)(void *, int fd, const void *, size_t, int flags);
    ssize_t (*sendto)(void *, int fd, const void *, size_t, int flags, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(void *, int fd, const struct msghdr *, int flags);
    int (*fcntl)(void *, int fd, int command, ...);
    int (*ioctl)(void *, int fd, unsigned long request, ...);
    int (*close)(void *, int fd);
    int (*shutdown)(void *, int fd, int how);
    int (*getsockopt)(void *, int fd, int level, int name, void *, socklen_t *);
    int (*setsockopt)(void *, int fd, int level, int name, const void *, socklen_t);
    int (*poll)(void *, struct pollfd *, nfds_t, int timeout_ms);
    int (*netdev_send)(void *, const void *packet, size_t);      /* an IP packet to the stack */
    int (*netdev_receive)(void *, void *packet, size_t *, long long *time_us); /* the next one from it; waits */
    int (*usleep)(void *, useconds_t);
    int (*gettimeofday)(void *, struct timeval *, struct timezone *);
    int (*epoll_create)(void *, int);
    int (*epoll_ctl)(void *, int epfd, int operation, int fd, struct epoll_event *);
    int (*epoll_wait)(void *, int epfd, struct epoll_event *, int, int timeout_ms);
    int (*pipe)(void *, int[2]);
    int (*splice)(void *, int in, off_t *, int out, off_t *, size_t, unsigned flags);
};

void packetdrill_interface_init(const char *flags, struct packetdrill_interface *);

#endif
